// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

// Generate writes all that comes from charts.
func Generate(root string) error {
	docs := filepath.Join(root, "docs", "helm.md")
	text, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	page := string(text)
	for _, name := range Names {
		data, err := os.ReadFile(filepath.Join(Dir(root, name), "values.yaml"))
		if err != nil {
			return err
		}
		var names []string
		if name == Hub {
			names, err = apiServices(root)
			if err != nil {
				return err
			}
		}
		schema, table, err := Schema(data, names)
		if err != nil {
			return fmt.Errorf("values.yaml of %s: %w", name, err)
		}
		if err := write(filepath.Join(Dir(root, name), "values.schema.json"), schema); err != nil {
			return err
		}
		page, err = between(page, name, rows(table))
		if err != nil {
			return fmt.Errorf("docs/helm.md: %w", err)
		}
	}
	if err := write(docs, []byte(page)); err != nil {
		return err
	}
	// Before the charts are rendered.
	if err := copyFiles(root); err != nil {
		return err
	}
	files, err := Deploy(root)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := write(filepath.Join(root, "artifacts", "deploy", path), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// copied are files in artifacts that charts have a copy of: Helm reads none from outside of a chart.
var copied = map[string][]string{
	Hub: {"monitoring/dashboard.json", "monitoring/monitors.yaml", "monitoring/rules.yaml",
		"deploy/operator/operator.open-cluster-management.io_clustermanagers.yaml", "deploy/operator/operator.open-cluster-management.io_klusterlets.yaml"},
}

func copyFiles(root string) error {
	for chart, paths := range copied {
		for _, path := range paths {
			data, err := os.ReadFile(filepath.Join(root, "artifacts", path))
			if err != nil {
				return err
			}
			copied := filepath.Join(Dir(root, chart), "files", path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o755), write(copied, data)); err != nil {
				return err
			}
		}
	}
	return nil
}

var apiServiceName = regexp.MustCompile(`(?m)^  name: (v[0-9][^ {\n]+)$`)

// apiServices are the names of the hub's APIServices.
func apiServices(root string) (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(Dir(root, Hub), "templates", "hub", "apiservices.yaml"))
	if err != nil {
		return nil, err
	}
	for _, found := range apiServiceName.FindAllStringSubmatch(string(text), -1) {
		names = append(names, found[1])
	}
	if len(names) == 0 {
		return nil, errors.New("no APIService is found in the chart's templates")
	}
	return names, nil
}

// write leaves a file alone that is right already.
func write(path string, data []byte) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == string(data) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// rows are a table of values in Markdown.
func rows(table []Value) string {
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, v := range table {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.Path, v.Default, strings.ReplaceAll(v.Description, "|", `\|`))
	}
	return b.String()
}

// between replaces what is between the two marks of a chart.
func between(page, name, text string) (string, error) {
	begin, end := fmt.Sprintf("<!-- values of %s: written by `make generate` -->\n", name), "<!-- end -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + text + end + after, nil
}

// Package writes the charts as archives, with the version of the images.
func Package(root, version, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range Names {
		c, err := Load(root, name)
		if err != nil {
			return err
		}
		c.Metadata.AppVersion = version
		c.Metadata.Version = strings.TrimPrefix(version, "v")
		if _, err := semver.StrictNewVersion(c.Metadata.Version); err != nil {
			// A commit without a tag is no version that Helm takes.
			c.Metadata.Version = "0.0.0-g" + version
		}
		if err := c.Validate(); err != nil {
			return fmt.Errorf("%s: version %q: want one such as v1.2.3, or a commit: %w", name, version, err)
		}
		path, err := util.Save(c, dir)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
