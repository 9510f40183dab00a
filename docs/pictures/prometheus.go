package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// writeMetrics writes metrics in the text format of Prometheus, by OpenTelemetry's rules for their names.
func writeMetrics(w io.Writer, data metricdata.ResourceMetrics) error {
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if err := writeMetric(w, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeMetric(w io.Writer, m metricdata.Metrics) error {
	name := underscored(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		if d.IsMonotonic {
			name += "_total"
		}
		writeValues(w, name, d.DataPoints)
	case metricdata.Gauge[int64]:
		writeValues(w, name, d.DataPoints)
	case metricdata.Gauge[float64]:
		writeValues(w, name, d.DataPoints)
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			var below uint64
			for i, n := range p.BucketCounts {
				below += n
				le := "+Inf"
				if i < len(p.Bounds) {
					le = strconv.FormatFloat(p.Bounds[i], 'g', -1, 64)
				}
				fmt.Fprintf(w, "%s_bucket%s %d\n", name, labels(p.Attributes, "le="+strconv.Quote(le)), below)
			}
			fmt.Fprintf(w, "%s_sum%s %g\n", name, labels(p.Attributes), p.Sum)
			fmt.Fprintf(w, "%s_count%s %d\n", name, labels(p.Attributes), p.Count)
		}
	default:
		return fmt.Errorf("%s: %T", m.Name, m.Data)
	}
	return nil
}

func writeValues[N int64 | float64](w io.Writer, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		fmt.Fprintf(w, "%s%s %v\n", name, labels(p.Attributes), p.Value)
	}
}

func labels(set attribute.Set, more ...string) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, underscored(string(a.Key))+"="+strconv.Quote(a.Value.String()))
	}
	return "{" + strings.Join(append(all, more...), ",") + "}"
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }

// serveMetrics serves the metrics of a process, and returns the address.
func serveMetrics(reader *sdkmetric.ManualReader) (*http.Server, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var data metricdata.ResourceMetrics
		err := reader.Collect(r.Context(), &data)
		if err == nil {
			err = writeMetrics(w, data)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	return server, listener.Addr().String(), nil
}

// prometheusServer scrapes the processes.
type prometheusServer struct {
	cmd *exec.Cmd
	dir string
	url string
}

func startPrometheus(ctx context.Context, processes []*process) (p *prometheusServer, err error) {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: %v}\n", scrapeInterval)
	config.WriteString("scrape_configs:\n- job_name: shop\n  static_configs:\n")
	for _, process := range processes {
		fmt.Fprintf(&config, "  - {targets: [%q], labels: {instance: %q}}\n", process.metrics, process.name)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: apt-get install prometheus", err)
	}
	return &prometheusServer{cmd: cmd, dir: dir, url: "http://" + addr}, nil
}

func (p *prometheusServer) close() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	return errors.Join(err, os.RemoveAll(p.dir))
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// query returns the series of a query since a moment, with their legends.
func (p *prometheusServer) query(ctx context.Context, expr, legend string, since time.Time) (lines []line, err error) {
	values := url.Values{
		"query": {expr}, "step": {strconv.FormatFloat(scrapeInterval.Seconds(), 'g', -1, 64)},
		"start": {stamp(since)}, "end": {stamp(time.Now())},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query_range?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	for _, result := range answer.Data.Result {
		name := placeholder.ReplaceAllStringFunc(legend, func(label string) string {
			return result.Metric[strings.Trim(label, "{}")]
		})
		l := line{name: strings.Join(strings.Fields(name), " ")}
		for _, v := range result.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, err
			}
			if !math.IsNaN(value) {
				l.points = append(l.points, point{at: at - float64(since.UnixMilli())/1000, value: value})
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
