package docs_test

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// alert is a rule of docs/grafana/alerts.yaml.
type alert struct {
	name, expr, severity, panel, summary string
}

// readAlerts reads the rules. The file has one key a line, and nothing that needs more of YAML.
func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	f, err := os.Open("grafana/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	indents := map[string]int{
		"groups": 0, "- name": 2, "rules": 4, "- alert": 6, "expr": 8, "for": 8, "labels": 8, "severity": 10,
		"annotations": 8, "panel": 10, "summary": 10,
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		text := strings.TrimLeft(line, " ")
		key, value, ok := strings.Cut(text, ":")
		value = strings.TrimPrefix(value, " ")
		if indent, known := indents[key]; !ok || !known || len(line)-len(text) != indent {
			t.Fatalf("%q is no line of a rule", line)
		}
		if quoted := strings.Trim(value, "'"); quoted != value {
			if value != "'"+quoted+"'" || strings.Contains(quoted, "'") {
				t.Fatalf("%q is quoted badly", line)
			}
			value = quoted
		} else if strings.Contains(value, ": ") || strings.Contains(value, " #") || strings.HasPrefix(value, "{") {
			t.Fatalf("%q has to be quoted", line)
		}
		if key == "- alert" {
			alerts = append(alerts, alert{name: value})
		}
		if len(alerts) == 0 {
			continue
		}
		a := &alerts[len(alerts)-1]
		switch key {
		case "expr":
			a.expr = value
		case "severity":
			a.severity = value
		case "panel":
			a.panel = value
		case "summary":
			a.summary = value
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return alerts
}

var (
	templateLabel = regexp.MustCompile(`\$labels\.(\w+)`)
	threshold     = regexp.MustCompile(`[<>] [0-9.]+( unless .*)?$`)
)

func TestAlertsQueryWhatIsMeasuredAndNameAPanel(t *testing.T) {
	metrics := measured(t)
	thresholds := make(map[string]bool)
	for _, p := range readDashboard(t).Panels {
		thresholds[p.Title] = len(p.FieldConfig.Defaults.Thresholds.Steps) > 1
	}
	var names []string
	for _, a := range readAlerts(t) {
		names = append(names, a.name)
		q := parse(t, a.expr)
		q.check(t, a.name, metrics)
		if !threshold.MatchString(a.expr) {
			t.Errorf("%s: the rule compares with no number", a.name)
		}
		for _, l := range templateLabel.FindAllStringSubmatch(a.summary, -1) {
			if !slices.Contains(q.kept, l[1]) {
				t.Errorf("%s: the summary has %s, the query has not", a.name, l[1])
			}
		}
		if a.summary == "" || a.severity != "warning" && a.severity != "critical" {
			t.Errorf("%s: severity %q, summary %q", a.name, a.severity, a.summary)
		}
		if !thresholds[a.panel] {
			t.Errorf("%s: there is no panel %q with thresholds", a.name, a.panel)
		}
	}
	for _, name := range []string{
		"CuratorLockContended", "CuratorLeaderFlapping", "CuratorQueueGrowing", "CuratorQueueDeep",
		"CuratorQueueStuck", "CuratorConnectionFlapping", "CuratorSessionFlapping", "CuratorDispatcherLagging",
		"CuratorNodeMissing", "CuratorValueUncertain",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no alert %s", name)
		}
	}
}
