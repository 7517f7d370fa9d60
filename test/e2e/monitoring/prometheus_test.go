// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// job is a scrape target of Prometheus, by HTTPS.
type job struct {
	name, host, ca, serverName string
}

// prometheus is a server on loopback.
type prometheus struct{ url string }

// startPrometheus starts a Prometheus that scrapes all jobs with a token, and evaluates rules.
func startPrometheus(t *testing.T, token string, rules any, jobs ...job) prometheus {
	t.Helper()
	bin := harness.Must(filepath.Abs(filepath.Join(harness.Root, "_output", "debian", "usr", "bin", "prometheus")))(t)
	if _, err := os.Stat(bin); err != nil {
		bin, err = exec.LookPath("prometheus")
		if err != nil {
			t.Skip("there is no prometheus: run hack/debian.sh prometheus, or install it")
		}
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	tokenFile := write("token", []byte(token))
	var scraped []any
	for _, j := range jobs {
		tls := map[string]any{"insecure_skip_verify": j.ca == "", "server_name": j.serverName}
		if j.ca != "" {
			tls["ca_file"] = write(j.name+".crt", []byte(j.ca))
		}
		scraped = append(scraped, map[string]any{
			"job_name": j.name, "scheme": "https", "tls_config": tls, "authorization": map[string]any{"credentials_file": tokenFile},
			"static_configs": []any{map[string]any{"targets": []string{j.host}}},
		})
	}
	write("rules.yaml", harness.Must(yaml.Marshal(rules))(t))
	config := write("prometheus.yaml", harness.Must(yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
		"rule_files": []string{"rules.yaml"}, "scrape_configs": scraped,
	}))(t))
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	harness.StartDaemon(t, bin, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	p := prometheus{"http://" + address}
	return p
}

// get requests a path of the API of Prometheus, and decodes the data of the response.
func (p prometheus) get(path string, query url.Values, data any) error {
	response, err := http.Get(p.url + "/api/v1/" + path + "?" + query.Encode()) //nolint:noctx // of a test, on loopback
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", query, answer.Error)
	}
	return nil
}

// query returns how many series an expression has now.
func (p prometheus) query(expr string) (int, error) {
	var found struct{ Result []any }
	err := p.get("query", url.Values{"query": {expr}}, &found)
	return len(found.Result), err
}
