package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages of this program",
		Long:    `Man writes a page for each subcommand into a directory, which it creates.`,
		Example: `  curator man ~/.local/share/man/man1 && man curator-lock`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for name, page := range manPages(cmd.Root()) {
				//nolint:gosec // everybody may read it
				if err := os.WriteFile(filepath.Join(args[0], name), page, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// manPages returns the pages of a command and of those below it, by the names of their files. They have no date and no
// version, so that they change with the texts alone.
func manPages(cmd *cobra.Command) map[string][]byte {
	pages := map[string][]byte{manName(cmd) + ".1": manPage(cmd)}
	for _, c := range shownBelow(cmd) {
		for name, page := range manPages(c) {
			pages[name] = page
		}
	}
	return pages
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func shownBelow(cmd *cobra.Command) (some []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			some = append(some, c)
		}
	}
	return some
}

func manPage(cmd *cobra.Command) []byte {
	p := &roff{}
	p.macro(".TH %s 1 \"\" \"\" \"Curator for Go\"", strings.ToUpper(manName(cmd)))
	p.macro(".SH NAME")
	p.macro("%s \\- %s", escape(manName(cmd)), escape(cmd.Short))
	p.macro(".SH SYNOPSIS")
	_, arguments, _ := strings.Cut(cmd.Use, " ")
	arguments = strings.TrimPrefix(arguments, "[flags] ") // they are the options
	if len(shownBelow(cmd)) > 0 {
		arguments = "COMMAND"
	}
	p.macro("\\fB%s\\fR [OPTION...] %s", escape(cmd.CommandPath()), escape(arguments))
	p.macro(".SH DESCRIPTION")
	p.text(first(cmd.Long, cmd.Short))
	if len(cmd.Aliases) > 0 {
		p.macro(".PP\nOther names of it: %s.", escape(strings.Join(cmd.Aliases, ", ")))
	}
	if below := shownBelow(cmd); len(below) > 0 {
		p.macro(".SH COMMANDS")
		for _, c := range below {
			p.macro(".TP\n\\fB%s\\fR(1)\n%s", escape(manName(c)), escape(c.Short))
		}
	}
	p.macro(".SH OPTIONS")
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			p.flag(f)
		}
	})
	if cmd.HasParent() {
		p.macro(".PP\nThe options about the servers and about the output are those of \\fBcurator\\fR(1).")
	}
	if cmd.HasExample() {
		p.macro(".SH EXAMPLES")
		p.text(cmd.Example)
	}
	if cmd.HasParent() {
		p.macro(".SH SEE ALSO\n\\fB%s\\fR(1)", escape(manName(cmd.Parent())))
	}
	return p.Bytes()
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// roff is a page in the language of man.
type roff struct{ bytes.Buffer }

// macro writes lines whose arguments are escaped already.
func (p *roff) macro(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text writes paragraphs. Lines with space in front are kept as they are, as the help shows them.
func (p *roff) text(text string) {
	isKept, isNew := false, false
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		keep := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		if isKept && !keep {
			p.macro(".fi\n.RE")
			isNew = true
		}
		switch {
		case line == "":
			isNew = true
		case keep && !isKept:
			p.macro(".PP\n.RS 2\n.nf")
		case !keep && isNew:
			p.macro(".PP")
		}
		if isKept = keep; line != "" {
			p.macro("%s", escape(strings.TrimPrefix(line, "  ")))
			isNew = false
		}
	}
	if isKept {
		p.macro(".fi\n.RE")
	}
}

// flag writes a flag with its value, its text and its default.
func (p *roff) flag(f *pflag.Flag) {
	kind, text := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	switch {
	case kind != "" && f.NoOptDefVal != "":
		kind = "[=" + kind + "]"
	case kind != "":
		kind = " " + kind
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		value := f.DefValue
		if f.Value.Type() == "string" {
			value = strconv.Quote(value)
		}
		text += " (default " + value + ")"
	}
	p.macro(".TP\n\\fB%s\\fR%s\n%s", escape(name), escape(kind), escape(text))
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// escape returns text that has no meaning for roff.
func escape(text string) string {
	lines := strings.Split(roffEscapes.Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
