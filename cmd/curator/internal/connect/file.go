package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// file is the configuration file.
type file struct {
	Current  string              `yaml:"current"`
	Contexts map[string]settings `yaml:"contexts"`
}

// settings is a context of the file.
type settings struct {
	Connect        string        `yaml:"connect"`
	SessionTimeout time.Duration `yaml:"session-timeout"`
	TLS            TLS           `yaml:"tls"`
	SASL           SASL          `yaml:"sasl"`
	Auth           []string      `yaml:"auth"`
}

// namedContext returns the context that the flags or the environment name, or the current one of the file. Without a
// file there is none, unless one was asked for.
func (f *Flags) namedContext(getenv func(string) string) (settings, error) {
	name := first(f.Context, getenv("CURATOR_CONTEXT"))
	path := first(f.Config, getenv("CURATOR_CONFIG"))
	asked := path != "" || name != ""
	if path == "" {
		dir := getenv("XDG_CONFIG_HOME")
		if dir == "" {
			dir = filepath.Join(getenv("HOME"), ".config")
		}
		path = filepath.Join(dir, "curator", "config.yaml")
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return settings{}, nil
	}
	if err != nil {
		return settings{}, err
	}
	var conf file
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true) // a misspelt key would be a client without TLS
	if err := d.Decode(&conf); err != nil && !errors.Is(err, io.EOF) {
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	name = first(name, conf.Current)
	if name == "" {
		return settings{}, nil
	}
	named, ok := conf.Contexts[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(conf.Contexts)), ", ")
		return settings{}, fmt.Errorf("%s: no context %q; it has %s", path, name, first(known, "none"))
	}
	return named, nil
}
