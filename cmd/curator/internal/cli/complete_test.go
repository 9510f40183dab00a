//go:build linux

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// bashCompletion completes the last of the words of a line as bash does, by the script in $1. It has what the script
// needs of the package bash-completion.
const bashCompletion = `
source "$1" || exit
shift
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_curator
printf '%s\n' "${COMPREPLY[@]}"
`

func TestCompletionOfBash(t *testing.T) {
	environ, _ := grown(t)
	script := filepath.Join(t.TempDir(), "curator.bash")
	generated := invoke(t.Context(), []string{"completion", "bash", "--no-descriptions"}).stdout
	testclient.Must(t, os.WriteFile(script, []byte(generated), 0o600))
	if out, err := exec.CommandContext(t.Context(), "bash", "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("bash -n: %v: %s", err, out)
	}
	for line, want := range map[string]string{
		"queue requ":         "requeue",
		"queue requeue --dr": "--dry-run",
		"ls -o ":             "table\njson\nyaml",
		"get /t/a":           "/t/a\n/t/a-b",
		"get /t/a/":          "/t/a/lock\n/t/a/note",
		"get /none/":         "",
		"rm --force /t/c":    "/t/c",
	} {
		words := append([]string{"-c", bashCompletion, "bash", script, os.Args[0]}, strings.Split(line, " ")...)
		var got string
		testenv.Eventually(t, func() bool { // a server that is slow to answer is not waited for
			cmd := exec.CommandContext(t.Context(), "bash", words...)
			cmd.Env = append(append(os.Environ(), asProgram, "GORACE=atexit_sleep_ms=0"), environ...)
			out, err := cmd.CombinedOutput()
			testclient.Must(t, err)
			got = strings.TrimSpace(strings.ReplaceAll(string(out), " \n", "\n"))
			return got != "" || want == ""
		}, line)
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestCompletionsOfOtherShells(t *testing.T) {
	for shell, want := range map[string]string{
		"zsh": "#compdef curator", "fish": "complete -c curator", "powershell": "Register-ArgumentCompleter",
	} {
		got := invoke(t.Context(), []string{"completion", shell})
		if got.code != CodeOK || !strings.Contains(got.stdout, want) || got.stderr != "" {
			t.Errorf("%s: code %d, %s; no %q", shell, got.code, got.stderr, want)
		}
	}
}
