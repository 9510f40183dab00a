package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// shown are the panels of the picture, three in a row. All of the dashboard would be four screens.
var shown = []string{
	"Operations", "Duration of operations, p95", "Outages since the start of the process",
	"Connected now", "Left of the session", "Changes of the connection state per minute",
	"Outcomes of waits", "Wait for a lock, p95", "Time held, p95",
	"Which participant leads", "Changes of leadership per minute", "Lag of caches, p95",
	"Items consumed", "Nodes in queues", "Age of items, p95",
}

// panel is what the picture needs of a panel of Grafana.
type panel struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	FieldConfig struct {
		Defaults struct {
			Unit   string `json:"unit"`
			Custom struct {
				Stacking struct {
					Mode string `json:"mode"`
				} `json:"stacking"`
			} `json:"custom"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

// shownPanels returns the panels of the picture from the JSON of the dashboard.
func shownPanels(data []byte) (panels []panel, err error) {
	var all struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	byTitle := make(map[string]panel)
	for _, p := range all.Panels {
		if p.Type != "row" { // which may have the title of a panel
			byTitle[p.Title] = p
		}
	}
	for _, title := range shown {
		p, ok := byTitle[title]
		if !ok {
			return nil, fmt.Errorf("the dashboard has no panel %q", title)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

const (
	scrapeInterval = 2 * time.Second
	rateInterval   = "10s"
)

var variable = regexp.MustCompile(`"\$\w+"`)

// filled returns a query with the values that Grafana fills in for "All".
func filled(expr string) string {
	return variable.ReplaceAllString(strings.ReplaceAll(expr, "$__rate_interval", rateInterval), `".*"`)
}

// dashboard runs the load, has Prometheus answer the queries of the dashboard, and draws the answers.
func dashboard(ctx context.Context) (err error) {
	data, err := os.ReadFile("docs/grafana/curator.json")
	if err != nil {
		return err
	}
	panels, err := shownPanels(data)
	if err != nil {
		return err
	}
	l, err := newLoad()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	prometheus, err := startPrometheus(ctx, l.processes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prometheus.close()) }()
	start := time.Now()
	events, err := l.run(ctx)
	if err != nil {
		return err
	}
	charts := make([]chart, len(panels))
	for i, p := range panels {
		c := chart{title: p.Title, unit: p.FieldConfig.Defaults.Unit, took: time.Since(start), events: events}
		c.stacked = p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
		for _, target := range p.Targets {
			lines, err := prometheus.query(ctx, filled(target.Expr), target.LegendFormat, start)
			if err != nil {
				return err
			}
			c.lines = append(c.lines, lines...)
		}
		charts[i] = c
	}
	var svg bytes.Buffer
	drawCharts(&svg, charts)
	return os.WriteFile("docs/grafana/dashboard.svg", svg.Bytes(), 0o644)
}
