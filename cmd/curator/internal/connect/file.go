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
	"regexp"
	"slices"
	"strings"
	"syscall"
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

// directory returns that of configuration files, "" without one. A relative one does not count: whoever may write to
// the directory in which the program is started would choose its servers.
func directory(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config")
	}
	return ""
}

// namedContext returns the context that the flags or the environment name, or the current one of the file. Without a
// file there is none, unless one was asked for.
func (f *Flags) namedContext(getenv func(string) string) (settings, error) {
	name := first(f.Context, getenv("CURATOR_CONTEXT"))
	path := first(f.Config, getenv("CURATOR_CONFIG"))
	asked := path != "" || name != ""
	if path == "" {
		dir := directory(getenv)
		switch {
		case dir == "" && asked:
			return settings{}, fmt.Errorf("no context %q: there is no configuration file without HOME", name)
		case dir == "":
			return settings{}, nil
		}
		path = filepath.Join(dir, "curator", "config.yaml")
	}
	content, err := os.ReadFile(path)
	// The home of a service may be /dev/null, which is no directory.
	if (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && !asked {
		return settings{}, nil
	}
	if err != nil {
		return settings{}, err
	}
	var conf file
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true) // a misspelt key would be a client without TLS
	if err := d.Decode(&conf); err != nil && !errors.Is(err, io.EOF) {
		return settings{}, fmt.Errorf("%s: %s", path, unknownField.ReplaceAllString(err.Error(), "the key $1 is not known"))
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

// unknownField is what the decoder says of a key that is not known: it names a type of this package.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)
