package docs_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
)

// dashboard is what the tests read of one.
type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Datasource  datasource `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit       string `json:"unit"`
			Thresholds struct {
				Steps []struct{} `json:"steps"`
			} `json:"thresholds"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr         string     `json:"expr"`
		LegendFormat string     `json:"legendFormat"`
		Exemplar     bool       `json:"exemplar"`
		Datasource   datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

var prometheus = datasource{Type: "prometheus", UID: "${DS_PROMETHEUS}"}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	data, err := os.ReadFile("grafana/curator.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	return d
}

// TestDashboardPanelsAreComplete checks that every panel says what it shows, and what to look for.
func TestDashboardPanelsAreComplete(t *testing.T) {
	d := readDashboard(t)
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	ids, taken := make(map[int]bool), make(map[[2]int]string)
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] {
			t.Errorf("panel %d %q: no title, or an id that another one has", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("%s: lies over %q, or the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || strings.Contains(p.Description, "\n") || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s: has to have a description of one line, and a unit", p.Title)
		}
		if len(p.Targets) == 0 || p.Datasource != prometheus {
			t.Errorf("%s: has to have a query, of %v", p.Title, prometheus)
		}
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "histogram_quantile") != target.Exemplar {
				t.Errorf("%s: a query of a histogram, and no other, has exemplars", p.Title)
			}
			for _, filter := range []string{`instance=~"$instance"`, `curator_client_name=~"$client"`} {
				if strings.Count(target.Expr, filter) != strings.Count(target.Expr, "{") {
					t.Errorf("%s: a selector is without %s", p.Title, filter)
				}
			}
			if target.LegendFormat == "" || target.Datasource != prometheus {
				t.Errorf("%s: a query has to have a legend, and %v", p.Title, prometheus)
			}
			for _, v := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("%s: there is no variable %s", p.Title, v[1])
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		for _, of := range variable.FindAllStringSubmatch(v.Definition, -1) {
			if !variables[of[1]] {
				t.Errorf("variable %s: there is no variable %s", v.Name, of[1])
			}
		}
	}
}

// TestDashboardQueriesWhatIsMeasured checks that the queries have metrics, labels and values that there are, and that
// no metric is left out.
func TestDashboardQueriesWhatIsMeasured(t *testing.T) {
	d, metrics := readDashboard(t), measured(t)
	left := make(map[string]bool)
	for _, m := range metrics {
		left[m.instrument] = true
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			q := parse(t, target.Expr)
			q.check(t, p.Title, metrics)
			for _, s := range q.selectors {
				delete(left, metrics[s.metric].instrument)
			}
			for _, l := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(q.kept, l[1]) {
					t.Errorf("%s: the legend has %s, the query has not", p.Title, l[1])
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("no panel shows %s", name)
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		inner, ok := strings.CutPrefix(v.Definition, "label_values(")
		comma := strings.LastIndex(inner, ", ")
		if !ok || comma < 0 {
			t.Fatalf("variable %s: %s", v.Name, v.Definition)
		}
		q := parse(t, inner[:comma])
		q.kept = append(q.kept, strings.TrimSuffix(inner[comma+2:], ")"))
		q.check(t, "variable "+v.Name, metrics)
	}
}

var (
	variable = regexp.MustCompile(`\$\{?(\w+)`)
	legend   = regexp.MustCompile(`\{\{(\w+)\}\}`)
	// metric and labels of a selector: the dashboard has no metric without braces.
	selection = regexp.MustCompile(`(\w*)\{((?:[^}"]|"[^"]*")*)\}`)
	matcher   = regexp.MustCompile(`^(\w+)(=~|!=|=)"([^"]*)"$`)
	grouping  = regexp.MustCompile(`\bby \(([^)]*)\)`)
	window    = regexp.MustCompile(`\[[^\]]*\]`)
	word      = regexp.MustCompile(`[A-Za-z_]\w*`)
)

var functions = []string{"sum", "max", "min", "rate", "increase", "histogram_quantile", "or", "unless"}

// query is what the tests know of one.
type query struct {
	selectors []selector
	kept      []string // labels that it is grouped by
}

type selector struct {
	metric   string
	matchers [][]string // whole, label, operator, value
}

// parse returns what a query selects and keeps. There is nothing else in it but functions that are known.
func parse(t *testing.T, expr string) (q query) {
	t.Helper()
	for _, found := range selection.FindAllStringSubmatch(expr, -1) {
		s := selector{metric: found[1]}
		var by []string // the names of several metrics
		for text := range strings.SplitSeq(found[2], ", ") {
			m := matcher.FindStringSubmatch(text)
			switch {
			case m == nil:
				t.Fatalf("%s: %s is no matcher", expr, text)
			case m[1] == "__name__":
				by = strings.Split(m[3], "|")
			default:
				s.matchers = append(s.matchers, m)
			}
		}
		if by == nil {
			by = []string{s.metric}
		}
		for _, name := range by {
			q.selectors = append(q.selectors, selector{name, s.matchers})
		}
	}
	rest := selection.ReplaceAllString(expr, "")
	for _, g := range grouping.FindAllStringSubmatch(rest, -1) {
		q.kept = append(q.kept, strings.Split(g[1], ", ")...)
	}
	rest = window.ReplaceAllString(grouping.ReplaceAllString(rest, ""), "")
	for _, w := range word.FindAllString(rest, -1) {
		if !slices.Contains(functions, w) {
			t.Fatalf("%s: what is %s?", expr, w)
		}
	}
	if len(q.selectors) == 0 {
		t.Fatalf("%s: selects nothing", expr)
	}
	return q
}

// check checks a query of a panel against what is measured.
func (q query) check(t *testing.T, of string, metrics map[string]measurement) {
	t.Helper()
	for _, s := range q.selectors {
		m, ok := metrics[s.metric]
		if !ok {
			t.Errorf("%s: there is no metric %s", of, s.metric)
			continue
		}
		ours := false // and not of another database, or another system of messages
		for _, match := range s.matchers {
			label, operator, value := match[1], match[2], match[3]
			if !m.has(label) {
				t.Errorf("%s: %s has no label %s", of, s.metric, label)
			}
			if operator == "=" && value != "" && !m.labels[label][value] {
				t.Errorf("%s: %s of %s is never %s", of, label, s.metric, value)
			}
			ours = ours || operator == "=" && value == "zookeeper"
		}
		if !ours && !strings.HasPrefix(s.metric, "curator_") {
			t.Errorf("%s: %s has to be that of ZooKeeper", of, s.metric)
		}
		if strings.HasSuffix(s.metric, "_bucket") && !slices.Contains(q.kept, "le") {
			t.Errorf("%s: the buckets of %s are added up", of, s.metric)
		}
		for _, label := range q.kept {
			if !m.has(label) {
				t.Errorf("%s: %s has no label %s", of, s.metric, label)
			}
		}
	}
}

// measurement is a series of Prometheus.
type measurement struct {
	instrument string                     // in OpenTelemetry
	labels     map[string]map[string]bool // to their values
}

// has reports whether a series has a label, of its own or as all have.
func (m measurement) has(label string) bool {
	switch label {
	case "job", "instance": // the resource: service.name and service.instance.id
		return true
	case "le":
		return m.labels["le"] != nil
	}
	return len(m.labels[label]) > 0
}

// measured returns all series, by their names in Prometheus, with all labels that they can have.
func measured(t *testing.T) map[string]measurement {
	t.Helper()
	var declared []sdkmetric.Instrument
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
		func(i sdkmetric.Instrument) (none sdkmetric.Stream, used bool) {
			declared = append(declared, i)
			return none, false
		}))
	everything(t.Context(), provider)
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	labels := make(map[string]map[string]map[string]bool) // by instrument
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			labels[m.Name] = labelsOf(t, m)
		}
	}
	series := make(map[string]measurement)
	for _, i := range declared {
		if labels[i.Name] == nil {
			t.Fatalf("%s: this test does not have it measured", i.Name)
		}
		for _, name := range translated(t, i) {
			m := measurement{i.Name, maps.Clone(labels[i.Name])}
			if strings.HasSuffix(name, "_bucket") {
				m.labels["le"] = map[string]bool{}
			}
			series[name] = m
		}
	}
	return series
}

// translated returns the names of an instrument's series, by OpenTelemetry's rules for Prometheus: units in braces are
// left out, others and the type are behind the name.
func translated(t *testing.T, i sdkmetric.Instrument) []string {
	t.Helper()
	name := underscored(i.Name)
	switch {
	case i.Unit == "s":
		name += "_seconds"
	case !strings.HasPrefix(i.Unit, "{"):
		t.Fatalf("%s: the unit %q is not known", i.Name, i.Unit)
	}
	switch i.Kind {
	case sdkmetric.InstrumentKindCounter:
		return []string{name + "_total"}
	case sdkmetric.InstrumentKindUpDownCounter, sdkmetric.InstrumentKindObservableUpDownCounter,
		sdkmetric.InstrumentKindObservableGauge:
		return []string{name}
	case sdkmetric.InstrumentKindHistogram:
		return []string{name + "_bucket", name + "_sum", name + "_count"}
	}
	t.Fatalf("%s: the kind %v is not known", i.Name, i.Kind)
	return nil
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }

func labelsOf(t *testing.T, m metricdata.Metrics) map[string]map[string]bool {
	t.Helper()
	labels := make(map[string]map[string]bool)
	note := func(set attribute.Set) {
		for _, a := range set.ToSlice() {
			name := underscored(string(a.Key))
			if labels[name] == nil {
				labels[name] = make(map[string]bool)
			}
			labels[name][a.Value.String()] = true
		}
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			note(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			note(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			note(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			note(p.Attributes)
		}
	default:
		t.Fatalf("%s: %T", m.Name, m.Data)
	}
	return labels
}

// everything has all happen that is measured.
func everything(ctx context.Context, provider *sdkmetric.MeterProvider) {
	tm := telemetry.New(telemetry.Config{
		MeterProvider: provider, TracerProvider: nooptrace.NewTracerProvider(), Server: "zk1:2181", Name: "orders",
	})
	tm.Observe(func() telemetry.Load { return telemetry.Load{} })
	for _, err := range []error{nil, zk.ErrNoNode, zk.ErrConnectionClosed} {
		what := telemetry.Operation{Name: "create", Namespace: "app", Path: "/a"}
		r := tm.Begin(ctx, new(telemetry.Record), what, true, time.Now())
		r.Retry(zk.ErrConnectionClosed, time.Second)
		r.GivenUp(zk.ErrConnectionClosed)
		r.End(time.Now(), telemetry.Facts{Err: err})
	}
	tm.Unhandled(ctx, "listener", zk.ErrNoNode)
	for _, state := range []string{telemetry.StateConnected, telemetry.StateSuspended, telemetry.StateLost} {
		tm.StateNoted(state)
		tm.StateChanged(state, time.Now())
	}
	tm.WatchEvent(zk.Event{Type: zk.EventNodeDeleted})

	lock := report.NewLock(tm, "mutex", "orders", "/lock")
	_, wait := lock.Acquire(ctx)
	wait.End(report.Acquired, nil)
	lock.Hold(wait).End(report.Released)
	election := report.NewElection(tm, "leader_latch", "orders", "blue", "/leader")
	_, wait = election.Elect(ctx)
	wait.End(report.Elected, nil)
	election.Term(ctx).End(report.EndedClosed)
	barrier := report.NewBarrier(tm, "barrier", "orders", "/barrier")
	_, wait = barrier.Wait(ctx, "wait", 0)
	wait.End(report.Passed, nil)

	cache := report.NewCache(tm, "curator_cache", "orders", "/config")
	cache.Created(ctx)
	cache.Unreadable(ctx, 1)
	cache.Changed(ctx)
	cache.Deleted(ctx)
	cache.Reloaded(ctx)
	cache.Notified(ctx, time.Now().UnixMilli())
	service := report.NewService(tm, "orders", "/services/orders")
	for _, outcome := range []string{report.Picked, report.NoInstance} {
		service.Pick(ctx, outcome)
	}
	service.Observe(func() report.ServiceState { return report.ServiceState{Changed: time.Now()} })
	node := report.NewNodes(tm, "persistent_node", "orders", "/members/a")
	node.Desired(ctx, 1)
	node.Missing(ctx, 1)
	node.Refused(ctx, 1)

	value := report.NewValue(tm, "shared_value", "orders", "/limits")
	value.Conflict(ctx)
	value.Uncertain(ctx)

	queue := report.NewQueue(tm, "queue", "orders", "/queue")
	for _, err := range []error{nil, zk.ErrNoNode} {
		_, m := queue.Send(ctx, 1)
		m.End("a", err)
		_, m = queue.Process(ctx, nil)
		m.End("a", err)
		_, m = queue.Settle(ctx)
		m.End("a", err)
	}
	queue.Received(ctx, time.Now(), 1, nil)
	queue.HandedOver(ctx, time.Now(), 1)
	queue.PutBack(ctx)
	queue.DeadLettered(ctx)
	queue.ClaimLost(ctx, report.Taken)
	queue.ObserveDepth(func(context.Context) (report.Depth, bool) { return report.Depth{}, true })
}
