// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboard writes the Grafana dashboard of a hub to the file that its argument names. What it shows is in panels.go.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// dashboard is the part of Grafana's JSON model that is used here.
type dashboard struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	SchemaVersion int        `json:"schemaVersion"`
	Editable      bool       `json:"editable"`
	Refresh       string     `json:"refresh"`
	Time          timeRange  `json:"time"`
	Templating    templating `json:"templating"`
	Panels        []panel    `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Type  string `json:"type"`
	Query string `json:"query"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Datasource  *source      `json:"datasource,omitempty"`
	GridPos     gridPos      `json:"gridPos"`
	FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
	Collapsed   *bool        `json:"collapsed,omitempty"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults fieldDefaults `json:"defaults"`
}

type fieldDefaults struct {
	Unit string   `json:"unit"`
	Min  *float64 `json:"min,omitempty"`
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
}

// build places rows from top to bottom, and the panels of each from left to right.
func build(rows []row) dashboard {
	d := dashboard{
		UID: "clusterhub", Title: "Clusterhub", Description: "A hub: its clusters, its servers, and what is under way on it.", Tags: []string{"clusterhub"},
		SchemaVersion: 39, Refresh: "1m", Time: timeRange{"now-6h", "now"},
		Templating: templating{[]variable{{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"}}},
	}
	const width, high, low = 24, 8, 4
	from := &source{"prometheus", "${datasource}"}
	y, zero := 0, 0.0
	add := func(p panel) {
		p.ID = len(d.Panels) + 1
		d.Panels = append(d.Panels, p)
	}
	for _, r := range rows {
		add(panel{Type: "row", Title: r.title, GridPos: gridPos{1, width, 0, y}, Collapsed: new(bool)})
		y++
		x, bottom := 0, y
		for _, s := range r.shown {
			p := panel{Type: "timeseries", Title: s.title, Description: s.about, Datasource: from, FieldConfig: &fieldConfig{fieldDefaults{s.unit, &zero}}}
			p.GridPos = gridPos{high, 8, 0, 0}
			if s.now {
				p.Type, p.GridPos = "stat", gridPos{low, 6, 0, 0}
			}
			if x+p.GridPos.W > width {
				x, y = 0, bottom
			}
			p.GridPos.X, p.GridPos.Y = x, y
			x, bottom = x+p.GridPos.W, max(bottom, y+p.GridPos.H)
			for i, q := range s.queries {
				p.Targets = append(p.Targets, target{RefID: string(rune('A' + i)), Expr: q.expr, LegendFormat: q.legend, Instant: s.now})
			}
			add(p)
		}
		y = bottom
	}
	return d
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboard FILE")
		os.Exit(2)
	}
	text, err := json.MarshalIndent(build(rows), "", "  ")
	if err == nil {
		err = os.WriteFile(os.Args[1], append(text, '\n'), 0o644) //nolint:gosec // for all to read
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
