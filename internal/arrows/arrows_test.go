package arrows

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/gocurator/curator"

// rule says what a package or tree ("dir/...") may import beside the standard library and [dependencies].
type rule struct {
	pkg     string
	imports []string // packages of this module, which have earlier rules
	any     bool     // a program at the very top: no limit at all
}

// rules has one entry for each package or tree, lowest first: a package imports only what has an earlier rule. Packages
// that do not exist are fine.
var rules = []rule{
	// How a client logs in: what the engine and mechanisms agree on.
	{pkg: "sasl"},
	{pkg: "sasl/digest", imports: []string{"sasl"}},

	// The ground floor: the engine.
	{pkg: "internal/errtext"},
	{pkg: "internal/usercode", imports: []string{"internal/errtext"}},
	{pkg: "internal/jute"},
	{pkg: "internal/dispatch", imports: []string{"internal/usercode"}},
	{pkg: "internal/instrument", imports: []string{"internal/usercode"}},
	{pkg: "internal/telemetry", imports: []string{
		"internal/errtext", "internal/instrument", "internal/jute", "internal/usercode",
	}},
	{pkg: "internal/hook", imports: []string{"internal/telemetry"}},
	{pkg: "internal/wire", imports: []string{"internal/jute", "internal/usercode", "sasl"}},
	{pkg: "internal/exec", imports: []string{
		"internal/errtext", "internal/dispatch", "internal/jute", "internal/telemetry", "internal/usercode", "internal/wire",
	}},

	// The vocabulary.
	{pkg: "retry", imports: []string{"internal/errtext", "internal/jute"}},
	{pkg: "callbacks", imports: []string{"internal/hook", "internal/jute"}},
	{pkg: "zkpath"},
	{pkg: "codec"},
	{pkg: "internal/decimal"},

	// What the client and its recipes share, and no program sees.
	{pkg: "internal/listeners", imports: []string{"callbacks"}},
	{pkg: "internal/opconfig", imports: []string{"callbacks", "internal/exec", "internal/telemetry"}},

	// The client.
	{pkg: "builders", imports: slices.Concat(engine, vocabulary, []string{"internal/hook", "internal/opconfig"})},
	{pkg: "framework", imports: slices.Concat(engine, vocabulary, []string{
		"builders", "internal/hook", "internal/listeners", "internal/opconfig", "sasl",
	})},
	{pkg: "tracing", imports: []string{"framework", "internal/hook", "internal/telemetry"}},

	// What recipes report. What recipes share is not below recipes, because discovery shares it.
	{pkg: "internal/report", imports: []string{"internal/instrument", "internal/telemetry", "internal/usercode"}},

	// Recipes do not know each other, except for the cache, nor the engine; they share the way to wait in line, and
	// which errors pass.
	{pkg: "internal/waitqueue", imports: slices.Concat(belowRecipes, []string{"internal/jute"})},
	{pkg: "internal/desired", imports: slices.Concat(belowRecipes, []string{"internal/jute", "internal/waitqueue"})},
	{pkg: "recipes/locks", imports: slices.Concat(belowRecipes, []string{"internal/waitqueue"})},
	{pkg: "recipes/leader", imports: slices.Concat(belowRecipes, []string{"internal/waitqueue"})},
	{pkg: "recipes/barrier", imports: slices.Concat(belowRecipes, []string{"internal/waitqueue"})},
	{pkg: "recipes/cache", imports: slices.Concat(belowRecipes, []string{"internal/waitqueue"})},
	{pkg: "recipes/atomic", imports: slices.Concat(belowRecipes, []string{"internal/decimal", "internal/waitqueue"})},
	// Shared values follow their nodes with a cache.
	{pkg: "recipes/shared", imports: slices.Concat(belowRecipes, []string{
		"internal/decimal", "internal/waitqueue", "recipes/cache",
	})},

	// The layers of the queue, lowest first. Only the queue has the type of its items.
	{pkg: "recipes/queue/internal/node", imports: []string{
		"framework", "internal/errtext", "internal/waitqueue", "zkpath",
	}},
	{pkg: "recipes/queue/internal/reply", imports: []string{
		"builders", "framework", "internal/usercode", "internal/waitqueue", "recipes/queue/internal/node",
	}},
	{pkg: "recipes/queue/internal/produce", imports: []string{
		"builders", "framework", "internal/errtext", "internal/hook", "internal/report", "internal/telemetry",
		"internal/waitqueue", "recipes/queue/internal/node", "recipes/queue/internal/reply", "callbacks", "zkpath",
	}},
	{pkg: "recipes/queue/internal/claim", imports: []string{
		"builders", "callbacks", "framework", "internal/errtext", "internal/hook", "internal/telemetry",
		"internal/usercode", "internal/waitqueue", "recipes/queue/internal/node", "recipes/queue/internal/reply",
		"zkpath",
	}},
	{pkg: "recipes/queue/internal/fetch", imports: []string{
		"builders", "framework", "internal/errtext", "internal/waitqueue", "recipes/queue/internal/claim",
		"recipes/queue/internal/node", "recipes/queue/internal/reply", "zkpath",
	}},
	{pkg: "recipes/queue", imports: slices.Concat(belowRecipes, []string{
		"internal/waitqueue", "recipes/queue/internal/claim", "recipes/queue/internal/fetch",
		"recipes/queue/internal/node", "recipes/queue/internal/produce", "recipes/queue/internal/reply",
	})},
	// A group member keeps a node and caches those of the others.
	{pkg: "recipes/nodes", imports: slices.Concat(belowRecipes, []string{
		"internal/desired", "internal/waitqueue", "recipes/cache",
	})},
	// Discovery registers instances as desired nodes, and looks at those of others through a cache.
	{pkg: "discovery/internal/javajson"},
	{pkg: "discovery", imports: slices.Concat(belowRecipes, []string{
		"discovery/internal/javajson", "internal/desired", "internal/waitqueue", "recipes/cache",
	})},
	{pkg: "discovery/rest", imports: []string{"discovery", "framework", "internal/usercode", "internal/waitqueue"}},

	// Test support, for the tests of all floors. curatortest and its server know nothing of the client: they speak the
	// protocol on their own.
	{pkg: "internal/zkserver", imports: []string{"internal/jute"}},
	{pkg: "curatortest", imports: []string{"internal/jute", "internal/zkserver", "sasl", "sasl/digest"}},
	{pkg: "internal/conformance"}, // tests alone
	{pkg: "internal/model"},       // tests alone
	{pkg: "internal/testenv", imports: []string{"curatortest", "internal/jute"}},
	{pkg: "internal/testenv/kdc", imports: []string{"internal/testenv"}},
	{pkg: "internal/testenv/observe"},
	{pkg: "internal/testenv/chaos", imports: []string{"curatortest", "internal/testenv"}},
	{pkg: "internal/testenv/testclient", imports: []string{
		"curatortest", "framework", "internal/hook", "internal/jute", "internal/testenv", "internal/testenv/chaos", "retry",
	}},
	{pkg: "internal/simulation"}, // tests alone
	{pkg: "internal/apicheck"},   // tests alone
	{pkg: "internal/arrows"},

	// Programs, which no package imports.
	{pkg: "bench/...", any: true},
	{pkg: "docs"},
	{pkg: "docs/pictures", any: true},
	{pkg: "examples/...", any: true},
	{pkg: "interop/...", any: true},
}

var (
	engine = []string{
		"internal/errtext", "internal/usercode", "internal/jute", "internal/dispatch", "internal/telemetry", "internal/wire",
		"internal/exec",
	}
	vocabulary = []string{"retry", "callbacks", "zkpath", "codec"}
	// Recipes know the client, and report what they do where it does.
	belowRecipes = slices.Concat(vocabulary, []string{
		"builders", "framework", "internal/errtext", "internal/usercode", "internal/hook", "internal/listeners",
		"internal/telemetry", "internal/report",
	})
)

// dependencies are the modules that the library stands on; tests may use testDependencies too. Of OpenTelemetry
// the library knows the API: the SDK is for programs, which choose what becomes of the data.
var (
	dependencies = []string{
		"github.com/go-zookeeper/zk",
		"github.com/cenkalti/backoff/v4",
		"go.opentelemetry.io/otel",
	}
	testDependencies = []string{
		"github.com/google/go-cmp",
		"go.uber.org/goleak",
		"github.com/anishathalye/porcupine",
		"go.opentelemetry.io/otel/sdk",
	}
)

// knowTelemetry are the packages that see OpenTelemetry. The recipes and the engine do not, except in tests.
var knowTelemetry = []string{
	"internal/instrument", "internal/telemetry", "internal/report", "internal/hook", "callbacks", "framework",
	"internal/testenv/...",
}

// Tests of a package may import more than the package: testSupport always, and from an external test package
// (package x_test) everything but the programs, because a test of a lower layer is a user of the whole.
var (
	testSupport = []string{"bench/nullserver", "curatortest", "internal/testenv", "internal/testenv/observe"}
	programs    = []string{"bench/...", "docs/pictures", "examples/...", "interop/..."}
)

func TestArrows(t *testing.T) {
	problems, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// check returns every violation of the rules in the module at the root of fsys.
func check(fsys fs.FS) ([]string, error) {
	var problems []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a temporary file that is gone again
			return nil
		case err != nil:
			return err
		case d.IsDir() && name != "." && (ignored(d.Name()) || isModule(fsys, name)):
			return fs.SkipDir
		case d.IsDir() || ignored(d.Name()) || path.Ext(name) != ".go":
			return nil
		}
		found, err := checkFile(fsys, name)
		problems = append(problems, found...)
		return err
	})
	return problems, err
}

// ignored reports whether the go command does not look at a file or directory of that name.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") && name != "." || strings.HasPrefix(name, "_") ||
		name == "testdata" || name == "vendor"
}

func isModule(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func checkFile(fsys fs.FS, name string) ([]string, error) {
	r, ok := ruleOf(path.Dir(name))
	if !ok {
		return []string{fmt.Sprintf("%s: no rule for package %s: add it to rules", name, path.Dir(name))}, nil
	}
	if r.any {
		return nil, nil
	}
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	isTest := strings.HasSuffix(name, "_test.go")
	isExternal := isTest && strings.HasSuffix(file.Name.Name, "_test")
	var problems []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		allowed := false
		if pkg, own := cutModule(imported); own {
			switch {
			case isExternal:
				allowed = !matches(programs, pkg) || matches(testSupport, pkg)
			case isTest:
				allowed = matches(r.imports, pkg) || matches(testSupport, pkg)
			default:
				allowed = matches(r.imports, pkg)
			}
		} else {
			forTests := isOf(testDependencies, imported) // first: the SDK is below otel/
			allowed = isStandard(imported) || isOf(dependencies, imported) && !forTests ||
				forTests && (isTest || match("internal/testenv/...", path.Dir(name)))
			if isOf([]string{"go.opentelemetry.io/otel"}, imported) && !isTest {
				allowed = allowed && matches(knowTelemetry, path.Dir(name))
			}
		}
		if !allowed {
			problems = append(problems, fmt.Sprintf("%s: may not import %s", name, imported))
		}
	}
	return problems, nil
}

func ruleOf(pkg string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return match(r.pkg, pkg) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, pkg) })
}

func match(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pkg == pattern
}

// cutModule returns the directory of a package of this module.
func cutModule(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// isStandard reports whether a package is in the standard library: the first element of its path is no host name.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func isOf(modules []string, imported string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return imported == m || strings.HasPrefix(imported, m+"/")
	})
}

// TestRules: the rules themselves hold the direction, so that an edit cannot turn an arrow round.
func TestRules(t *testing.T) {
	for _, p := range upward(rules) {
		t.Error(p)
	}
}

// upward returns the arrows of rules that do not point down.
func upward(rules []rule) (problems []string) {
	below := map[string]bool{}
	for _, r := range rules {
		for _, imported := range r.imports {
			if !below[imported] {
				problems = append(problems, fmt.Sprintf("%s may import %s, which has no earlier rule", r.pkg, imported))
			}
		}
		if below[r.pkg] {
			problems = append(problems, r.pkg+" has two rules")
		}
		below[r.pkg] = true
	}
	return problems
}

func TestUpward(t *testing.T) {
	got := upward([]rule{
		{pkg: "ground"},
		{pkg: "testenv", imports: []string{"ground", "client"}},
		{pkg: "client", imports: []string{"ground", "client"}},
		{pkg: "recipe", imports: []string{"client", "missing"}},
		{pkg: "ground"},
	})
	want := []string{
		"testenv may import client, which has no earlier rule",
		"client may import client, which has no earlier rule",
		"recipe may import missing, which has no earlier rule",
		"ground has two rules",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("upward (-want +got):\n%s", diff)
	}
}

// TestCheck tests the checker.
func TestCheck(t *testing.T) {
	const own = module + "/"
	file := func(pkg string, imports ...string) *fstest.MapFile {
		var b strings.Builder
		fmt.Fprintf(&b, "package %s\n", pkg)
		for _, i := range imports {
			fmt.Fprintf(&b, "import _ %q\n", i)
		}
		return &fstest.MapFile{Data: []byte(b.String())}
	}
	tests := []struct {
		name  string
		files fstest.MapFS
		want  []string
	}{
		{
			"what is allowed",
			fstest.MapFS{
				"go.mod":                   {Data: []byte("module " + module + "\n")},
				"builders/create.go":       file("builders", "context", own+"callbacks", own+"internal/exec"),
				"builders/create_test.go":  file("builders", own+"curatortest", "github.com/google/go-cmp/cmp"),
				"builders/example_test.go": file("builders_test", own+"framework", "go.opentelemetry.io/otel/sdk/trace"),
				"recipes/locks/mutex.go":   file("locks", own+"framework", own+"internal/report"),
				"framework/telemetry.go":   file("framework", "go.opentelemetry.io/otel/trace"),
				"internal/testenv/env.go":  file("testenv", own+"curatortest", "go.uber.org/goleak"),
				"bench/main.go":            file("main", own+"framework", "example.org/x"),
				"examples/a/b/main.go":     file("main", own+"recipes/locks", "example.org/x"),
			},
			nil,
		},
		{
			"what the go command does not see",
			fstest.MapFS{
				"unplaced/testdata/a.go": file("a"),
				"unplaced/_a.go":         file("a"),
				".cache/a/a.go":          file("a"),
				"_old/a.go":              file("a"),
				"tools/go.mod":           {Data: []byte("module tools\n")},
				"tools/tools.go":         file("tools"),
				"docs/readme.md":         {Data: []byte("# docs\n")},
			},
			nil,
		},
		{
			"upwards",
			fstest.MapFS{"builders/create.go": file("builders", own+"framework")},
			[]string{"builders/create.go: may not import " + own + "framework"},
		},
		{
			"upwards in a test of the package itself",
			fstest.MapFS{"internal/wire/conn_test.go": file("wire", own+"builders")},
			[]string{"internal/wire/conn_test.go: may not import " + own + "builders"},
		},
		{
			"a test library in the library",
			fstest.MapFS{"framework/client.go": file("framework", "go.uber.org/goleak")},
			[]string{"framework/client.go: may not import go.uber.org/goleak"},
		},
		{
			"test support in the library",
			fstest.MapFS{"framework/client.go": file("framework", own+"curatortest")},
			[]string{"framework/client.go: may not import " + own + "curatortest"},
		},
		{
			"OpenTelemetry in a recipe",
			fstest.MapFS{
				"recipes/locks/mutex.go":      file("locks", "go.opentelemetry.io/otel/trace"),
				"recipes/locks/mutex_test.go": file("locks", "go.opentelemetry.io/otel/trace"),
				"internal/exec/operation.go":  file("exec", "go.opentelemetry.io/otel"),
			},
			[]string{
				"internal/exec/operation.go: may not import go.opentelemetry.io/otel",
				"recipes/locks/mutex.go: may not import go.opentelemetry.io/otel/trace",
			},
		},
		{
			"one more dependency",
			fstest.MapFS{
				"framework/client.go":      file("framework", "github.com/go-zookeeper/zkx"),
				"framework/metrics.go":     file("framework", "go.opentelemetry.io/otel/sdk/metric"),
				"framework/client_test.go": file("framework", "github.com/stretchr/testify/assert"),
			},
			[]string{
				"framework/client.go: may not import github.com/go-zookeeper/zkx",
				"framework/client_test.go: may not import github.com/stretchr/testify/assert",
				"framework/metrics.go: may not import go.opentelemetry.io/otel/sdk/metric",
			},
		},
		{
			"a program",
			fstest.MapFS{
				"recipes/locks/mutex.go":      file("locks", own+"bench"),
				"recipes/locks/mutex_test.go": file("locks_test", own+"examples/quickstart"),
			},
			[]string{
				"recipes/locks/mutex.go: may not import " + own + "bench",
				"recipes/locks/mutex_test.go: may not import " + own + "examples/quickstart",
			},
		},
		{
			"a package without a layer",
			fstest.MapFS{"recipes/new/a.go": file("a")},
			[]string{"recipes/new/a.go: no rule for package recipes/new: add it to rules"},
		},
		{
			"a package at the root",
			fstest.MapFS{"curator.go": file("curator")},
			[]string{"curator.go: no rule for package .: add it to rules"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := check(tt.files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
		})
	}
}
