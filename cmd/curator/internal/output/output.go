// Package output prints the results of subcommands as a table, as JSON or as YAML.
package output

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Format is a form of the output. The zero value is Table.
type Format int

// The formats.
const (
	Table Format = iota
	JSON
	YAML
)

var names = []string{"table", "json", "yaml"}

// Names returns the names of the formats.
func Names() []string { return slices.Clone(names) }

// String returns the name of the format.
func (f *Format) String() string { return names[*f] }

// Set sets the format of a name.
func (f *Format) Set(name string) error {
	for i, n := range names {
		if n == name {
			*f = Format(i)
			return nil
		}
	}
	return fmt.Errorf("must be %s", strings.Join(names, ", "))
}

// Type is for the help text.
func (f *Format) Type() string { return "format" }

// Register adds the flag -o.
func (f *Format) Register(fs *pflag.FlagSet) {
	fs.VarP(f, "output", "o", "the form of the output: "+strings.Join(names, ", "))
}

// Writer prints rows: lines of a table, one JSON value a line, or YAML documents. JSON and YAML appear row by row, so
// that a pipe can follow them.
type Writer struct {
	format Format
	out    io.Writer
	table  *tabwriter.Writer
	rows   int
	err    error
}

// New returns a writer. The header is that of a table; without one a table has no header.
func New(out io.Writer, format Format, header ...string) *Writer {
	w := &Writer{format: format, out: out}
	if format == Table {
		w.table = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		if len(header) > 0 {
			w.line(header)
		}
	}
	return w
}

// Row prints a row: the cells in a table, the value otherwise. The value is marshaled by its JSON tags.
func (w *Writer) Row(value any, cells ...string) {
	if w.err != nil {
		return
	}
	switch w.format {
	case Table:
		w.line(cells)
	case JSON:
		w.err = writeJSON(w.out, value)
	case YAML:
		if w.rows > 0 {
			_, w.err = io.WriteString(w.out, "---\n")
		}
		w.err = errors.Join(w.err, writeYAML(w.out, value))
	}
	w.rows++
}

// line prints a line of the table. The last cell gets no spaces behind it.
func (w *Writer) line(cells []string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.table, strings.Join(cells, "\t")+"\n")
	}
}

// Err returns the first error so far.
func (w *Writer) Err() error { return w.err }

// Close prints what a table has kept to align it, and returns the first error.
func (w *Writer) Close() error {
	if w.err == nil && w.table != nil {
		w.err = w.table.Flush()
	}
	return w.err
}

func writeJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// writeYAML goes by way of JSON, so that a type needs one kind of tags, and keeps the order of the fields.
func writeYAML(out io.Writer, value any) error {
	var buf bytes.Buffer
	if err := writeJSON(&buf, value); err != nil {
		return err
	}
	var doc yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(buf.Bytes(), &doc); err != nil {
		return err
	}
	block(&doc)
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return err
	}
	return e.Close()
}

// block removes the style of JSON from a document. It leaves the quotes that a reader of YAML 1.1 needs, as in "no".
func block(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		_ = n.Encode(n.Value) // of a string there is no error
	}
	for _, c := range n.Content {
		block(c)
	}
}

// Data is the data of a node: text if it is UTF-8, base64 otherwise.
type Data struct {
	Text   *string `json:"data,omitempty"`
	Base64 string  `json:"dataBase64,omitempty"`
}

// NewData returns the data of a node. nil, which a node may have, is neither.
func NewData(data []byte) Data {
	if data == nil {
		return Data{}
	}
	if utf8.Valid(data) {
		s := string(data)
		return Data{Text: &s}
	}
	return Data{Base64: base64.StdEncoding.EncodeToString(data)}
}

// Session returns a session id as ZooKeeper prints it, "" for 0.
func Session(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", uint64(id))
}
