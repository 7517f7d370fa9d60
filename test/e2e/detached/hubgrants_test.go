// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// hubRight is a row of the documentation: a right of a server on a hub.
type hubRight struct {
	verbs     []string
	resources []schema.GroupResource
	// names is [""] for all names, and namespace is empty for all namespaces.
	names     []string
	namespace string
}

// mayWhatIsDocumented compares the rights of each server of a hub with the documentation.
func (s *served) mayWhatIsDocumented(t *testing.T, m *harness.Management) {
	t.Helper()
	none := withoutRights(t, s.Instance)
	for account, token := range s.tokens(t, m) {
		s.accountMayWhatIsDocumented(t, account, token, none)
	}
}

// accountMayWhatIsDocumented requests all rules in each namespace of the hub, as some rights are limited to one namespace. Rights of an account
// without any grant need not be documented.
func (s *served) accountMayWhatIsDocumented(t *testing.T, account, token string, none *rest.Config) {
	t.Helper()
	config, documented := s.as(token), documentedOfServer(t, account)
	namespaces := harness.Must(harness.Kube(t, s.AdminConfig()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t).Items
	if len(namespaces) < 8 {
		t.Fatalf("the hub has %d namespaces only", len(namespaces))
	}
	for _, namespace := range namespaces {
		want := rights{}
		for _, row := range documented {
			for _, resource := range row.resources {
				if row.namespace == "" || row.namespace == namespace.Name {
					names := row.names
					if names[0] == "" {
						names = nil
					}
					want.Add(row.verbs, []string{resource.Group}, []string{resource.Resource}, names)
				}
			}
		}
		got, base := operatortest.RightsIn(t, config, namespace.Name), operatortest.RightsIn(t, none, namespace.Name)
		for right := range got {
			if !want[right] && !base[right] {
				t.Errorf("%s may %s in %s, which is not documented", account, right, namespace.Name)
			}
		}
		for right := range want {
			if !got[right] {
				t.Errorf("%s has no rule to %s in %s, which is documented", account, right, namespace.Name)
			}
		}
	}
}

// as returns a client of the hub with a token.
func (s *served) as(token string) *rest.Config {
	config := rest.AnonymousClientConfig(s.AdminConfig())
	config.BearerToken, config.QPS = token, -1
	return config
}

// documentedOfServer returns the rows of a server.
func documentedOfServer(t *testing.T, account string) (rows []hubRight) {
	t.Helper()
	list := func(cell string) (all []string) {
		for item := range strings.SplitSeq(cell, ",") {
			all = append(all, strings.Trim(item, " `"))
		}
		return all
	}
	for line := range strings.Lines(string(harness.Must(os.ReadFile(filepath.Join(harness.Root, "docs", "permissions.md")))(t))) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.TrimSpace(cells[0]) != "`"+account+"`" {
			continue
		}
		row := hubRight{verbs: list(cells[3])}
		for _, resource := range list(cells[1]) {
			resource, subresource, _ := strings.Cut(resource, "/")
			of := schema.ParseGroupResource(resource)
			if subresource != "" {
				of.Resource += "/" + subresource
			}
			row.resources = append(row.resources, of)
		}
		row.names = list(cells[2])
		if row.names[0] == "all" {
			row.names = []string{""}
		}
		if namespace, ok := strings.CutPrefix(strings.TrimSpace(cells[4]), "in "); ok {
			row.namespace = strings.Trim(namespace, "`")
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("the documentation says nothing of %s", account)
	}
	return rows
}
