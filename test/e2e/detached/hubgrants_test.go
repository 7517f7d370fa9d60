// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// hubRight is a row of the documentation: what a server of a hub may do there.
type hubRight struct {
	verbs     []string
	resources []schema.GroupResource
	// names has "" for all, and namespace is empty for all.
	names     []string
	namespace string
}

// mayWhatIsDocumented asks the hub for each verb on each resource that it has, as each of its servers.
func (s *served) mayWhatIsDocumented(t *testing.T, m *harness.Management) {
	t.Helper()
	each := may(t, s.Hub, withoutRights(t, s.Hub))
	for account, token := range s.tokens(t, m) {
		s.accountMayWhatIsDocumented(t, account, token, each)
	}
}

// accountMayWhatIsDocumented is given what each account may.
func (s *served) accountMayWhatIsDocumented(t *testing.T, account, token string, each rights) {
	t.Helper()
	config := s.as(token)
	documented, everywhere := documentedOfServer(t, account), rights{}
	for _, row := range documented {
		for _, resource := range row.resources {
			for _, verb := range row.verbs {
				if row.names[0] == "" && row.namespace == "" {
					everywhere[verb+" "+resource.String()] = true
				}
				for _, name := range row.names {
					if !allowed(t, config, verb, resource, row.namespace, name) {
						t.Errorf("%s may not %s %s %s in %q, which is documented", account, verb, resource, name, row.namespace)
					}
				}
			}
		}
	}
	for right := range may(t, s.Hub, config) {
		if !everywhere[right] && !each[right] {
			t.Errorf("%s may %s, which is not documented", account, right)
		}
	}
}

// as is a client of the hub with a token.
func (s *served) as(token string) *rest.Config {
	config := rest.AnonymousClientConfig(s.AdminConfig())
	config.BearerToken, config.QPS = token, -1
	return config
}

// documentedOfServer are the rows of a server.
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
		if row.names = list(cells[2]); row.names[0] == "all" {
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
