// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig_Errors(t *testing.T) {
	for config, want := range map[string][]string{
		"":                          {`the configuration has no block "scheduler"`},
		"other: {}":                 {`the configuration has no block "scheduler"`},
		"scheduler: [":              {"yaml"},
		"scheduler: {purposes: {}}": {`unknown field "purposes"`},
		"scheduler: {scope: Global, strategy: Best}": {
			`scheduler.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"`,
			`scheduler.strategy: Unsupported value: "Best"`, "scheduler.purposeMappings: Required value",
		},
		"scheduler: {purposeMappings: {a: }}": {"scheduler.purposeMappings[a]: Required value: a purpose needs a template"},
		"scheduler: {purposeMappings: {a: {tenancyCount: -1, template: {spec: {}}}}}": {
			"scheduler.purposeMappings[a].template.spec.profile: Required value", "scheduler.purposeMappings[a].template.spec.tenancy: Required value",
			"scheduler.purposeMappings[a].tenancyCount: Invalid value: -1",
		},
		"scheduler: {purposeMappings: {a: {tenancyCount: 1, template: {spec: {profile: p, tenancy: Exclusive}}}}}": {
			"tenancyCount: Invalid value: 1: must be 0 for the tenancy Exclusive"},
		"scheduler: {purposeMappings: {a: {template: {spec: {profile: p, tenancy: Mine}}}}}": {`template.spec.tenancy: Unsupported value: "Mine"`},
		"scheduler: {selectors: {clusters: {matchLabels: {g: x}}}, purposeMappings: {a: {template: {spec: {profile: p, tenancy: Shared}}}}}": {
			"template.metadata.labels: Invalid value", "the selectors ask for g=x"},
		"scheduler: {selectors: {requests: {matchExpressions: [{key: a, operator: Like}]}}, purposeMappings: {a: {template: {spec: {profile: p, tenancy: Shared}}}}}": {
			"scheduler.selectors.requests.matchExpressions[0].operator"},
		"scheduler: {purposeMappings: {My_Purpose: {template: {spec: {profile: p, tenancy: Shared}}}}}": {
			`scheduler.purposeMappings[My_Purpose]: Invalid value: "My_Purpose"`},
		"scheduler: {purposeMappings: {a: {template: {metadata: {uid: x}, spec: {profile: p, tenancy: Shared}}}}}": {`unknown field`},
		"scheduler: {policy: {clusterRequests: [], accessRequests: []}}":                                           {"scheduler.purposeMappings: Required value: without a purpose"},
		"scheduler: {policy: {}}": {"scheduler.purposeMappings: Required value: without a purpose"},
		"scheduler: {policy: {clusterRequests: [{expression: 'purpose =='}, {expression: purpose}, {expression: 'cluster == null'}]}}": {
			"scheduler.policy.clusterRequests[0].expression: Invalid value", "scheduler.policy.clusterRequests[1].expression: Invalid value",
			"must be a bool, not string", "undeclared reference to 'cluster'"},
	} {
		_, err := parse([]byte(config))
		if err == nil {
			t.Errorf("%s: taken", config)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", config, err, part)
			}
		}
	}
}

// Of several files, later ones have precedence. Blocks of other controllers are ignored.
func TestConfig_FilesAreMerged(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, text := range map[string]string{
		"1.yaml": testConfig + "\nmanagedControlPlane: {x: y}",
		"2.yaml": "scheduler: {strategy: Simple, purposeMappings: {shared: {tenancyCount: 5}}}",
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files = append(files, filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml"))
	live, err := NewLiveConfig(files)
	if err != nil {
		t.Fatal(err)
	}
	c := live.current.Load()
	d := c.PurposeMappings["shared"]
	if c.Strategy != StrategySimple || len(c.PurposeMappings) != 3 || d.TenancyCount != 5 || d.Template.Spec.Profile != "p" {
		t.Errorf("%+v %+v", c, d)
	}
}

// An error at the start names the file and the field.
func TestConfig_ErrorsNameFile(t *testing.T) {
	dir := t.TempDir()
	good, syntax, value := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "syntax.yaml"), filepath.Join(dir, "value.yaml")
	for file, text := range map[string]string{good: testConfig, syntax: "scheduler: [", value: "scheduler: {scope: Global}"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing.yaml")
	for want, files := range map[string][]string{
		"--scheduler-config: " + syntax + ": ": {good, syntax},
		"--scheduler-config: " + good + ", " + value + ": scheduler.scope: Unsupported value: \"Global\"": {good, value},
		"--scheduler-config: open " + missing + ": no such file or directory":                             {good, missing},
	} {
		if _, err := (Options{ConfigFiles: files}).Load(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if live, err := (Options{}).Load(); live != nil || err != nil || live.Policy() != nil || live.Changes() != nil {
		t.Errorf("without files there is %v, %v", live, err)
	}
}

// A policy on AccessRequests is also useful if another program grants ClusterRequests, which are left to it.
func TestConfig_PolicyOnAccessRequestsOnly(t *testing.T) {
	f := newFixture(t, "scheduler: {policy: {accessRequests: [{expression: 'true'}]}}", newCluster("foo/theirs", "exclusive", shared, "gone"))
	f.create(newRequest("foo/exclusive", "exclusive"))
	f.writes = nil
	f.settle("foo/exclusive")
	f.reclaim("foo/theirs")
	if len(f.writes) > 0 {
		t.Errorf("written: %q", f.writes)
	}
	if !f.config.policy.RestrictsAccessRequests() {
		t.Error("there is no policy")
	}
	// Clusters that this program has granted before can still be released.
	f.config = mustParse(t, testConfig)
	f.settle("foo/exclusive")
	f.config = mustParse(t, "scheduler: {policy: {accessRequests: []}}")
	f.delete(f.request("foo/exclusive"))
	f.settle("foo/exclusive")
	f.wantClusters("foo/theirs gone")
}

// If the selector of all purposes and that of one have the same label, the former has precedence, as in openMCP.
func TestConfig_SelectorsAreMerged(t *testing.T) {
	c := mustParse(t, `scheduler: {selectors: {clusters: {matchLabels: {a: global}, matchExpressions: [{key: c, operator: Exists}]}}, purposeMappings: {x: {
  selector: {matchLabels: {a: local, b: local}, matchExpressions: [{key: d, operator: DoesNotExist}]},
  template: {metadata: {labels: {a: global, b: local, c: x}}, spec: {profile: p, tenancy: Shared}}}}}`)
	if got := c.PurposeMappings["x"].clusters.String(); got != "a=global,b=local,c,!d" {
		t.Errorf("the selector is %s", got)
	}
}
