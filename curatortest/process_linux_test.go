package curatortest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestServerEndsWithItsParent(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	dir := t.TempDir() // the parent is killed and cleans nothing up
	parent := exec.CommandContext(testenv.Context(t), os.Args[0])
	parent.Env = append(os.Environ(), orphanVariable+"=yes", "TMPDIR="+dir)
	_, err := parent.StdinPipe() // so that it waits
	must(t, err)
	out, err := parent.StdoutPipe()
	must(t, err)
	must(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent says: %s", line)
	}
	if !runs(pid) {
		t.Fatalf("no process %d", pid)
	}

	must(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	testenv.Eventually(t, func() bool { return !runs(pid) }, "the server is gone")
}

// runs reports whether there is a process that is not a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // after the name
	return err == nil && !bytes.HasPrefix(state, []byte("Z"))
}
