// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

func TestLabel_ChangesOnlyLabels(t *testing.T) {
	const setLabel = "cluster.open-cluster-management.io/clusterset"
	for name, test := range map[string]struct {
		args string
		// fails is the expected error; if it is empty, want are the expected labels.
		fails string
		want  map[string]string
		body  string
	}{
		"a new one": {args: "region=emea", want: map[string]string{"env": "prod", "region": "emea"},
			body: `{"metadata":{"labels":{"region":"emea"},"resourceVersion":""}}`},
		"the same again": {args: "env=prod", want: map[string]string{"env": "prod"}},
		"another value":  {args: "env=test", fails: "cluster c1 already has the label env=prod: use --overwrite to change it"},
		"one of several": {args: "region=emea env=test", fails: "cluster c1 already has the label env=prod"},
		"another value with --overwrite": {args: "env=test --overwrite", want: map[string]string{"env": "test"},
			body: `{"metadata":{"labels":{"env":"test"}}}`},
		"removed":          {args: "env-", want: map[string]string{}, body: `{"metadata":{"labels":{"env":null},"resourceVersion":""}}`},
		"a reserved one":   {args: setLabel + "=payments", want: map[string]string{"env": "prod", setLabel: "payments"}},
		"an empty value":   {args: "region=", want: map[string]string{"env": "prod", "region": ""}},
		"removed and made": {args: "env- region=emea", want: map[string]string{"region": "emea"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewServer(t, clitest.NewCluster("c1", map[string]string{"env": "prod"}))
			config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
			args := append([]string{"label", "c1"}, strings.Fields(test.args)...)
			stdout, stderr, err := clitest.Run(t, config, args...)
			if test.fails != "" {
				if err == nil || stdout+stderr != "" {
					t.Fatalf("it goes on: %v, %q, %q", err, stdout, stderr)
				}
				clitest.Says(t, err.Error(), test.fails)
				s.WantUnchanged()
				return
			}
			if err != nil || stdout != "managedcluster/c1 labeled\n" || stderr != "" {
				t.Errorf("%v: %q, %q", err, stdout, stderr)
			}
			if got := s.Get(clitest.ClustersPath + "/c1").GetLabels(); !maps.Equal(got, test.want) {
				t.Errorf("the labels are %v, want %v", got, test.want)
			}
			if got := s.Bodies["PATCH "+clitest.ClustersPath+"/c1"]; test.body != "" && got != test.body {
				t.Errorf("it sends %s, want %s", got, test.body)
			}
			var result struct {
				Name   string
				Labels map[string]string
			}
			if err := json.Unmarshal([]byte(clitest.MustRun(t, config, append(args, "--overwrite", "-o", "json")...)), &result); err != nil ||
				result.Name != "c1" || !maps.Equal(result.Labels, test.want) {
				t.Errorf("-o json: %v: %+v", err, result)
			}
		})
	}
}

// TestLabel_UsesLabelSubresource: some users may write the labels of a cluster and no other field.
func TestLabel_UsesLabelSubresource(t *testing.T) {
	s := clitest.NewServer(t, clitest.NewCluster("c1", nil))
	s.Refuse("PATCH "+clitest.ClustersPath+"/c1", clitest.Forbidden("managedclusters", "patch"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	if got := clitest.MustRun(t, config, "label", "c1", "a=b"); got != "managedcluster/c1 labeled\n" {
		t.Errorf("it prints %q", got)
	}
	s.WantAsked("GET "+clitest.ClustersPath+"/c1", "PATCH "+clitest.ClustersPath+"/c1*", "PATCH "+clitest.ClustersPath+"/c1/label*")
	if got := s.Get(clitest.ClustersPath + "/c1").GetLabels(); !maps.Equal(got, map[string]string{"a": "b"}) {
		t.Errorf("the labels are %v", got)
	}
}
