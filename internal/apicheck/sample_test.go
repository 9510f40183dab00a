package apicheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const engineSource = `package engine
type Task struct {
	ID     int
	hidden int
}
func (Task) Run() {}
func (Task) stop() {}
type Base struct{}
func (*Base) Close() error { return nil }
type Closer interface { Close() error }
`

const sampleSource = `package sample
import "github.com/gocurator/curator/internal/engine"

const Limit = 3
const limit = 4
type Mode uint8
const Fast Mode = 1
func (Mode) String() string { return "" }
var ErrGone error
func New(name string, options ...Option) (*Queue[int], error) { return nil, nil }
func Map[T any](in []T) []T { return in }
func hidden() {}

type Queue[T any] struct {
	Name string
	base
	*engine.Base
	size int
}
type base struct{ Deep bool }
func (*base) Promoted(x int) {}
func (q *Queue[T]) Put(item T) error { return nil }
func (q Queue[T]) Len() int { return 0 }
func (q *Queue[T]) put() {}

type Option interface{ apply() }
type Client interface {
	engine.Closer
	Task() engine.Task
}
type Number interface{ ~int | ~int64 }
type Task = engine.Task
type Names = []string
type Handler func(task *engine.Task) error
`

// importerOf imports the packages that a test has checked before.
type importerOf map[string]*types.Package

func (m importerOf) Import(path string) (*types.Package, error) {
	if pkg, ok := m[path]; ok {
		return pkg, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

func checkSource(t *testing.T, dir, source string, imports importerOf) *types.Package {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, dir+".go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := (&types.Config{Importer: imports}).Check(module+"/"+dir, files, []*ast.File{parsed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func sample(t *testing.T) []string {
	t.Helper()
	engine := checkSource(t, "internal/engine", engineSource, nil)
	return surfaceOf(checkSource(t, "recipes/sample", sampleSource, importerOf{engine.Path(): engine}))
}

func TestSurfaceOfSample(t *testing.T) {
	want := []string{
		"recipes/sample: const Fast Mode = 1",
		"recipes/sample: const Limit untyped int = 3",
		"recipes/sample: func (*Queue[T]) Promoted(x int)",
		"recipes/sample: func (*Queue[T]) Put(item T) error",
		"recipes/sample: func (Mode) String() string",
		"recipes/sample: func (Queue[T]) Close() error",
		"recipes/sample: func (Queue[T]) Len() int",
		"recipes/sample: func (Task) Run()",
		"recipes/sample: func Map[T any](in []T) []T",
		"recipes/sample: func New(name string, options ...Option) (*Queue[int], error)",
		"recipes/sample: type Client interface",
		"recipes/sample: type Client interface { Close() error }",
		"recipes/sample: type Client interface { Task() internal/engine.Task }",
		"recipes/sample: type Client interface { internal/engine.Closer }",
		"recipes/sample: type Handler func(task *internal/engine.Task) error",
		"recipes/sample: type Mode uint8",
		"recipes/sample: type Names = []string",
		"recipes/sample: type Number interface{~int | ~int64}",
		"recipes/sample: type Option interface",
		"recipes/sample: type Option interface { unexported methods }",
		"recipes/sample: type Queue[T any] struct",
		"recipes/sample: type Queue[T] struct { *internal/engine.Base }",
		"recipes/sample: type Queue[T] struct { Deep bool }",
		"recipes/sample: type Queue[T] struct { Name string }",
		"recipes/sample: type Queue[T] struct { unexported fields }",
		"recipes/sample: type Task = internal/engine.Task",
		"recipes/sample: type Task struct { ID int }",
		"recipes/sample: type Task struct { unexported fields }",
		"recipes/sample: var ErrGone error",
	}
	if diff := cmp.Diff(want, sample(t)); diff != "" {
		t.Errorf("surfaceOf (-want +got):\n%s", diff)
	}
}

func TestLeaksOfSample(t *testing.T) {
	want := []string{"sample.Client.Task", "sample.Client.Closer", "sample.Handler", "sample.Queue.Base", "sample.Task"}
	if diff := cmp.Diff(want, leaksOf(sample(t))); diff != "" {
		t.Errorf("leaksOf (-want +got):\n%s", diff)
	}
}

func TestDeclared(t *testing.T) {
	tests := map[string]string{
		"recipes/queue: const Fast Mode = 1":                                   "queue.Fast",
		"recipes/queue: func (*Queue[T]) Put(t internal/exec.Task)":            "queue.Queue.Put",
		"recipes/queue: func Map[T any](t internal/exec.Task)":                 "queue.Map",
		"recipes/queue: type Queue[T any] struct":                              "queue.Queue",
		"recipes/queue: type Queue[T] struct { *internal/exec.Base }":          "queue.Queue.Base",
		"recipes/queue: type Client interface { Do(t internal/exec.Task) }":    "queue.Client.Do",
		"recipes/queue: type Handler func(task *internal/exec.Task) error":     "queue.Handler",
		"recipes/queue: var Default internal/exec.Task":                        "queue.Default",
		"builders: func (Create) Submit(ctx context.Context) internal/exec.Op": "builders.Create.Submit",
	}
	for line, want := range tests {
		if got := declared(line); got != want {
			t.Errorf("declared(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	reviewed := []string{"a: func A()", "a: func B()", "a: func D()"}
	got := compare(reviewed, []string{"a: func A()", "a: func B(int)", "a: func D()"})
	if want := "- a: func B()\n+ a: func B(int)\n"; got != want {
		t.Errorf("compare = %q, want %q", got, want)
	}
	if got := compare([]string{"a"}, []string{"a"}); got != "" {
		t.Errorf("compare of equal lists = %q", got)
	}
}
