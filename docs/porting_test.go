package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gocurator/curator"

// classes are the Java classes that porting.tsv has to have, by Java package, each with its number of rows: one for the
// class and one for each member.
const classes = `
o.a.c:
	CuratorConnectionLossException 2, CuratorZookeeperClient 21, RetryLoop 7, RetryPolicy 2, RetrySleeper 2,
	SessionFailRetryLoop$Mode 3, SessionFailRetryLoop$SessionFailedException 2, SessionFailRetryLoop 6,
	SessionFailedRetryPolicy 3, TimeTrace 3
o.a.c.drivers:
	AdvancedTracerDriver 5, EventTrace 5, OperationTrace 18, TracerDriver 3
o.a.c.ensemble:
	EnsembleProvider 6
o.a.c.ensemble.fixed:
	FixedEnsembleProvider 7
o.a.c.retry:
	BoundedExponentialBackoffRetry 3, ExponentialBackoffRetry 5, RetryForever 3, RetryNTimes 4, RetryOneTime 2,
	RetryUntilElapsed 4
o.a.c.utils:
	CloseableUtils 3, EnsurePath 5, PathUtils 3, ZKPaths$PathAndNode 4, ZKPaths 12
o.a.c.framework:
	AuthInfo 4, CuratorFramework 38, CuratorFrameworkFactory$Builder 49, CuratorFrameworkFactory 4,
	CuratorTempFramework 4, EnsureContainers 4, WatcherRemoveCuratorFramework 2
o.a.c.framework.api:
	ACLBackgroundPathAndBytesable 1, ACLCreateModeBackgroundPathAndBytesable 1,
	ACLCreateModePathAndBytesable 1, ACLCreateModeStatBackgroundPathAndBytesable 1, ACLPathAndBytesable 1,
	ACLProvider 3, ACLable 2, ACLableExistBuilderMain 1, AddStatConfigEnsembleable 1, AddWatchBuilder 2,
	AddWatchBuilder2 1, Addable 2, AsyncReconfigurable 2, BackgroundCallback 2, BackgroundEnsembleable 1,
	BackgroundPathAndBytesable 1, BackgroundPathable 1, BackgroundPathableQuietlyable 1,
	BackgroundVersionable 1, Backgroundable 2, ChildrenDeletable 2, Compressible 2, CompressionProvider 3,
	ConfigureEnsembleable 2, CreateBackgroundModeACLable 4, CreateBackgroundModeStatACLable 4, CreateBuilder 3,
	CreateBuilder2 2, CreateBuilderMain 5, CreateModable 2, CreateProtectACLCreateModePathAndBytesable 4,
	CuratorEvent 12, CuratorEventType 17, CuratorListener 2, CuratorWatcher 2, DataCallbackable 2,
	Decompressible 2, DeleteBuilder 1, DeleteBuilderMain 1, Ensembleable 2, ErrorListenerEnsembleable 2,
	ErrorListenerMultiTransactionMain 2, ErrorListenerPathAndBytesable 2, ErrorListenerPathable 2,
	ErrorListenerReconfigBuilderMain 2, ExistsBuilder 3, ExistsBuilderMain 1, GetACLBuilder 1,
	GetChildrenBuilder 1, GetConfigBuilder 1, GetDataBuilder 1, GetDataWatchBackgroundStatable 1,
	Guaranteeable 2, GuaranteeableDeletable 1, Idempotentable 2, JoinStatConfigEnsembleable 1, Joinable 2,
	LeaveStatConfigEnsembleable 1, Leaveable 2, Membersable 2, ParentACLable 2, PathAndBytesable 2, Pathable 2,
	ProtectACLCreateModePathAndBytesable 2, ProtectACLCreateModeStatPathAndBytesable 1, Quietly 2,
	ReconfigBuilder 1, ReconfigBuilderMain 1, RemoveWatchesBuilder 3, RemoveWatchesLocal 2,
	RemoveWatchesType 2, SetACLBuilder 1, SetDataBackgroundVersionable 1, SetDataBuilder 1,
	StatConfigureEnsembleable 1, StatPathable 1, Statable 2, SyncBuilder 1, TempGetDataBuilder 1,
	UnhandledErrorListener 2, VersionPathAndBytesable 1, Versionable 2, WatchBackgroundEnsembleable 1,
	WatchPathable 1, Watchable 2, WatchableBase 2, WatchesBuilder 2
o.a.c.framework.api.transaction:
	CuratorMultiTransaction 1, CuratorMultiTransactionMain 2, CuratorOp 3, CuratorTransaction 5,
	CuratorTransactionBridge 2, CuratorTransactionFinal 2, CuratorTransactionResult 8, OperationType 5,
	TransactionCheckBuilder 1, TransactionCreateBuilder 2, TransactionCreateBuilder2 1,
	TransactionDeleteBuilder 1, TransactionOp 5, TransactionSetDataBuilder 1, TypeAndPath 4
o.a.c.framework.listen:
	Listenable 3, ListenerEntry 2, ListenerManager 5, StandardListenerManager 8, UnaryListenerManager 1
o.a.c.framework.schema:
	DefaultSchemaValidator 3, Schema$Allowance 4, Schema 20, SchemaBuilder 10, SchemaSet 8,
	SchemaSetLoader$SchemaValidatorMapper 2, SchemaSetLoader 4, SchemaValidator 2,
	SchemaViolation$ViolatorData 5, SchemaViolation 5
o.a.c.framework.state:
	CircuitBreakingConnectionStateListener 4, ConnectionState 7, ConnectionStateErrorPolicy 2,
	ConnectionStateListener 3, ConnectionStateListenerManagerFactory 4, ConnectionStateManager 9,
	SessionConnectionStateErrorPolicy 3, StandardConnectionStateErrorPolicy 3
o.a.c.framework.recipes.barriers:
	DistributedBarrier 5, DistributedDoubleBarrier 4
o.a.c.framework.recipes.leader:
	CancelLeadershipException 2, LeaderLatch$CloseMode 3, LeaderLatch$State 4, LeaderLatch 14,
	LeaderLatchListener 3, LeaderSelector 12, LeaderSelectorListener 2, LeaderSelectorListenerAdapter 3,
	Participant 4
o.a.c.framework.recipes.locks:
	InterProcessMultiLock 5, InterProcessReadWriteLock$ReadLock 2, InterProcessReadWriteLock$WriteLock 2,
	InterProcessReadWriteLock 4, InterProcessSemaphore 5, InterProcessSemaphoreMutex 5,
	InterProcessSemaphoreV2 7, Lease 4, Locker 3,
	InterProcessLock 4, InterProcessMutex 8, LockInternals 4, LockInternalsDriver 3, LockInternalsSorter 2,
	PredicateResults 4, Revocable 2, RevocationListener 2, Revoker 2, StandardLockInternalsDriver 6
o.a.c.framework.recipes.queue:
	BlockingQueueConsumer 8, DistributedDelayQueue 9, DistributedIdQueue 9, DistributedPriorityQueue 9,
	DistributedQueue$ProcessType 3, DistributedQueue 9, ErrorMode 3, MultiItem 2, QueueAllocator 2,
	QueueBase 6, QueueBuilder 12, QueueConsumer 2, QueuePutListener 3, QueueSafety 2, QueueSerializer 3,
	QueueSharder 7, QueueSharderPolicies$Builder 6, QueueSharderPolicies 2, SimpleDistributedQueue 8
o.a.c.framework.recipes.cache:
	ChildData 5, CuratorCache$Options 4, CuratorCache 10, CuratorCacheAccessor 5, CuratorCacheBridge 2,
	CuratorCacheBridgeBuilder 5, CuratorCacheBuilder 5, CuratorCacheListener$Type 4, CuratorCacheListener 4,
	CuratorCacheListenerBuilder$ChangeListener 2, CuratorCacheListenerBuilder 12, CuratorCacheStorage 9,
	DefaultTreeCacheSelector 4, NodeCache 9, NodeCacheListener 2, PathChildrenCache$StartMode 4,
	PathChildrenCache 11, PathChildrenCacheEvent$Type 8, PathChildrenCacheEvent 5, PathChildrenCacheListener 2,
	PathChildrenCacheMode 4, TreeCache$Builder 9, TreeCache 11, TreeCacheEvent$Type 8, TreeCacheEvent 5,
	TreeCacheListener 2, TreeCacheSelector 3
o.a.c.framework.recipes.watch:
	PersistentWatcher 6
o.a.c.test:
	BaseClassForTests 5, DelegatingExecutorService 11, DirectoryUtils 5,
	ExecuteCalledWatchingExecutorService 5, FailedServerStartException 2, InstanceSpec 16, KillSession 3,
	QuorumConfigBuilder 9, TestingCluster 12, TestingServer 9, TestingZooKeeperMain$TestZooKeeperServer 6,
	TestingZooKeeperMain 7, TestingZooKeeperServer 9, Timing 11, ZooKeeperMainFace 5,
	ZooKeeperServerEmbeddedAdapter 7
`

// TestPortingNamesAreThere checks that every name of Java Curator in porting.tsv has a symbol that exists and is
// exported, or a reason.
func TestPortingNamesAreThere(t *testing.T) {
	text, err := os.ReadFile("porting.tsv")
	if err != nil {
		t.Fatal(err)
	}
	source := source{root: "..", packages: make(map[string]*symbols)}
	seen := make(map[string]int)
	count := make(map[string]int)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 3 {
			t.Errorf("line %d: %d columns, not 3", number, len(columns))
			continue
		}
		class, member, here := columns[0], columns[1], columns[2]
		count[class]++
		key := class + "\t" + member
		if first := seen[key]; first != 0 {
			t.Errorf("line %d: %s %s is on line %d too", number, class, member, first)
		}
		seen[key] = number
		if reason, ok := strings.CutPrefix(here, "-"); ok {
			if strings.TrimSpace(reason) == "" {
				t.Errorf("line %d: %s %s: no reason", number, class, member)
			}
			continue
		}
		for symbol := range strings.SplitSeq(here, ", ") {
			if err := source.check(symbol); err != nil {
				t.Errorf("line %d: %s %s: %v", number, class, member, err)
			}
		}
	}
	want := expectedClasses(t)
	for _, class := range slices.Sorted(maps.Keys(want)) {
		if count[class] != want[class] {
			t.Errorf("%s: %d rows, not %d", class, count[class], want[class])
		}
		if seen[class+"\t"] == 0 {
			t.Errorf("%s: no row for the class itself", class)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(count)) {
		if want[class] == 0 {
			t.Errorf("%s: not in the table of classes", class)
		}
	}
}

func expectedClasses(t *testing.T) map[string]int {
	t.Helper()
	want := make(map[string]int)
	pkg := ""
	for line := range strings.Lines(classes) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutSuffix(line, ":"); ok {
			pkg = name
			continue
		}
		for item := range strings.SplitSeq(line, ",") {
			item = strings.TrimSpace(item)
			if item == "" { // the end of the line
				continue
			}
			class, number, _ := strings.Cut(item, " ")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatalf("table of classes: %q: %v", item, err)
			}
			want[pkg+"."+class] = n
		}
	}
	return want
}

// source is the module, package by package as it is asked for.
type source struct {
	root     string
	packages map[string]*symbols
}

// symbols are the exported names of a package.
type symbols struct {
	names   map[string]bool            // of the package
	members map[string]map[string]bool // methods and fields, by type
	also    map[string][]string        // types whose members a type has too, as symbols
}

// check returns what is wrong with a symbol such as "framework.Client.Create".
func (s *source) check(symbol string) error {
	slash := strings.LastIndex(symbol, "/") + 1
	parts := strings.Split(symbol[slash:], ".")
	if len(parts) < 2 || len(parts) > 3 || strings.ContainsAny(symbol, " \t") {
		return fmt.Errorf("%q is no symbol", symbol)
	}
	for _, part := range parts[1:] {
		if !ast.IsExported(part) {
			return fmt.Errorf("%s is not exported", symbol)
		}
	}
	pkg := symbol[:slash] + parts[0]
	found, err := s.load(pkg)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", symbol, err)
	case !found.names[parts[1]]:
		return fmt.Errorf("there is no %s", symbol)
	case len(parts) == 3 && !s.has(pkg, parts[1], parts[2]):
		return fmt.Errorf("there is no %s", symbol)
	}
	return nil
}

// has reports whether a type has a member, of its own or from a type that it embeds or is another name of.
func (s *source) has(pkg, typ, member string) bool {
	p, err := s.load(pkg)
	if err != nil {
		return false
	}
	if p.members[typ][member] {
		return true
	}
	for _, other := range p.also[typ] {
		i := strings.LastIndex(other, ".")
		if s.has(other[:i], other[i+1:], member) {
			return true
		}
	}
	return false
}

// load parses a package of the module.
func (s *source) load(pkg string) (*symbols, error) {
	if p, ok := s.packages[pkg]; ok {
		return p, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(pkg))
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &symbols{
		names: make(map[string]bool), members: make(map[string]map[string]bool), also: make(map[string][]string),
	}
	for _, file := range files {
		name := file.Name()
		if file.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) { // a temporary file that is gone again
			continue
		}
		if err != nil {
			return nil, err
		}
		p.add(pkg, parsed)
	}
	s.packages[pkg] = p
	return p, nil
}

func (p *symbols) add(pkg string, file *ast.File) {
	imports := make(map[string]string) // of this module, by their names
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if rest, ok := strings.CutPrefix(path, module+"/"); ok {
			name := rest[strings.LastIndex(rest, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = rest
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.names[d.Name.Name] = true
			} else {
				p.member(baseName(d.Recv.List[0].Type), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.TypeSpec:
					p.names[sp.Name.Name] = true
					p.addType(pkg, sp.Name.Name, sp.Type, sp.Assign.IsValid(), imports)
				case *ast.ValueSpec:
					for _, name := range sp.Names {
						p.names[name.Name] = true
					}
				}
			}
		}
	}
}

func (p *symbols) addType(pkg, name string, typ ast.Expr, alias bool, imports map[string]string) {
	var fields *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		if alias {
			p.alsoHas(pkg, name, typ, imports)
		}
		return
	}
	for _, field := range fields.List {
		for _, n := range field.Names {
			p.member(name, n.Name)
		}
		if len(field.Names) == 0 { // embedded
			p.member(name, baseName(field.Type))
			p.alsoHas(pkg, name, field.Type, imports)
		}
	}
}

// alsoHas gives a type the members of another one, if that is in this module.
func (p *symbols) alsoHas(pkg, name string, typ ast.Expr, imports map[string]string) {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	switch t := typ.(type) {
	case *ast.Ident:
		p.also[name] = append(p.also[name], pkg+"."+t.Name)
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok && imports[x.Name] != "" {
			p.also[name] = append(p.also[name], imports[x.Name]+"."+t.Sel.Name)
		}
	}
}

func (p *symbols) member(typ, name string) {
	if p.members[typ] == nil {
		p.members[typ] = make(map[string]bool)
	}
	p.members[typ][name] = true
}

// baseName returns the name of a type without pointer, package and type parameters.
func baseName(typ ast.Expr) string {
	switch t := typ.(type) {
	case *ast.StarExpr:
		return baseName(t.X)
	case *ast.IndexExpr:
		return baseName(t.X)
	case *ast.IndexListExpr:
		return baseName(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}
