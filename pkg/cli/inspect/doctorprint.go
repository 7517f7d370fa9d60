// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
)

// reported is a finding with its link, for programs.
type reported struct {
	diagnosis.Finding `json:",inline"`
	Link              string `json:"link"`
}

func asReported(report *doctor.Report) map[string]any {
	findings := []reported{}
	for _, f := range report.Findings {
		findings = append(findings, reported{f, f.Link()})
	}
	unseen := report.Unseen
	if unseen == nil {
		unseen = []string{}
	}
	return map[string]any{"findings": findings, "checked": report.Checked, "unseen": unseen}
}

func (o *doctorOptions) printReport(report *doctor.Report) error {
	switch o.out.Value {
	case "json":
		return o.out.JSON(o.Out, asReported(report))
	case "yaml":
		data, err := yaml.Marshal(asReported(report))
		if err == nil {
			_, err = o.Out.Write(data)
		}
		return err
	}
	_, err := io.WriteString(o.Out, reportText(report))
	return err
}

// reportText returns the report for users. Text of other users is printed on one line, without control characters.
func reportText(report *doctor.Report) string {
	b := &strings.Builder{}
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format+"\n", args...) }
	for _, f := range report.Findings {
		line("%s %s%s", strings.ToUpper(string(f.Severity)), f.ID, command.Printable(kit.Prefixed("  ", f.Object)))
		line("  cause:       %s", command.Printable(f.Cause))
		if f.Since != nil {
			line("  since:       %s", f.Since.UTC().Format(time.RFC3339))
		}
		if f.Turn != "" {
			line("  waiting for: %s", command.Printable(f.Turn))
		}
		for i, fix := range f.Fix {
			title := "  fix:         "
			if i > 0 {
				title = "               "
			}
			line("%s%s", title, command.Printable(fix))
		}
		line("  more:        %s", f.Link())
		line("")
	}
	if len(report.Findings) == 0 {
		line("No problems found.")
	}
	line("Checked: %s.", strings.Join(report.Checked, ", "))
	for i, what := range report.Unseen {
		if i == 0 {
			line("Not seen, and therefore not checked:")
		}
		line("  %s", command.Printable(what))
	}
	return b.String()
}

// writeBundle writes an archive with the data that may leave the cluster.
func (o *doctorOptions) writeBundle(report *doctor.Report, r *answers.Reader) (err error) {
	// It replaces no existing file, and is readable by its owner alone: it contains names of clusters and users.
	file, err := os.OpenFile(o.bundle, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: name a file that does not exist", o.bundle)
	}
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			_ = os.Remove(o.bundle)
		}
	}()
	return writeArchive(file, report, r, map[string]string{"kubectl-hub": o.Version, "kubernetes": r.Version})
}

func writeArchive(to io.Writer, report *doctor.Report, r *answers.Reader, versions map[string]string) error {
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)
	made := r.Now().UTC().Truncate(time.Second)
	add := func(name string, value any) error {
		// Redact all of it again: findings quote messages, too.
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		var generic any
		if err := json.Unmarshal(data, &generic); err != nil {
			return err
		}
		data, err = json.MarshalIndent(doctor.Scrubbed(generic), "", "  ")
		if err != nil {
			return err
		}
		header := &tar.Header{Name: "doctor/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: made}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(data)
		return err
	}
	errs := []error{add("report.json", asReported(report)), add("versions.json", versions)}
	for _, kind := range slices.Sorted(maps.Keys(r.Objects)) {
		errs = append(errs, add("objects/"+kind+".json", r.Objects[kind]))
	}
	return errors.Join(append(errs, archive.Close(), zipped.Close())...)
}
