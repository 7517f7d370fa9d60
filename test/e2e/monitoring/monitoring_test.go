// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestMonitoring_RealHub verifies that users with clusterhub:metrics-reader can read all metrics, and no other user can; that every query of the
// dashboard and every alert has a result; and that the objects that they name exist.
func TestMonitoring_RealHub(t *testing.T) {
	h := harness.Hub(t)
	namespace := harness.NewNamespace(t)
	reader, stranger := token(t, h, namespace, "clusterhub:metrics-reader"), token(t, h, namespace, "")
	manager := fmt.Sprintf("127.0.0.1:%d", managerPort(t))
	// The hub is up when its API is, but hub-controller-manager serves metrics later, with a certificate that it creates first.
	harness.Eventually(t, "hub-controller-manager serves its metrics", func(context.Context) (bool, error) {
		connection, err := net.Dial("tcp", manager)
		if err != nil {
			return false, err
		}
		return true, connection.Close()
	})
	for name, test := range map[string]struct {
		url, token string
		want       int
	}{
		"no token":                    {"https://" + manager, "", http.StatusUnauthorized},
		"no token of the hub":         {"https://" + manager, "abc", http.StatusUnauthorized},
		"a token without the right":   {"https://" + manager, stranger, http.StatusForbidden},
		"another path with the right": {"https://" + manager + "/debug/pprof", reader, http.StatusNotFound},
		"plain HTTP":                  {"http://" + manager, reader, http.StatusBadRequest},
		"the right":                   {"https://" + manager, reader, http.StatusOK},
	} {
		if got := status(t, test.url, test.token); got != test.want {
			t.Errorf("%s: status %d, want %d", name, got, test.want)
		}
	}

	// A user reads the members of a set with a cluster.
	set, _ := harness.NewFleet(t, 1)
	who := harness.User(t, harness.Rule("get", "managedclustersets", set))
	watching := harness.Must(harness.Ours(t, h.UserConfig(who)).ViewV1alpha1().ClusterSetMembers().Watch(t.Context(), harness.InSet(set)))(t)
	t.Cleanup(watching.Stop)

	var rules struct{ Spec map[string]any }
	unmarshal(t, "rules.yaml", &rules)
	front, apiserver := h.AdminConfig(), h.HubAPIServerConfig(0)
	p := startPrometheus(t, reader, rules.Spec,
		job{"apiserver", host(t, front), caOf(t, front), ""},
		job{"hub-apiserver", host(t, apiserver), caOf(t, apiserver), apiserver.ServerName},
		job{"hub-controller-manager", manager, "", ""})
	harness.Eventually(t, "Prometheus has asked everything twice", func(context.Context) (bool, error) {
		n, err := p.query(`count_over_time(up[1m]) > 2 and up == 1`)
		return n == 3, err
	})

	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	unmarshal(t, "dashboard.json", &dashboard)
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			harness.Eventually(t, fmt.Sprintf("the panel %q shows %s", panel.Title, target.Expr), func(context.Context) (bool, error) {
				n, err := p.query(target.Expr)
				return harness.Holds(n > 0, err)
			})
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has only %d queries", queries)
	}
	text := string(harness.Must(os.ReadFile(filepath.Join(harness.Root, "artifacts", "monitoring", "library-metrics.txt")))(t))
	for line := range strings.Lines(text) {
		name, seldom, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "#" || seldom != "" {
			continue
		}
		if n, err := p.query(fmt.Sprintf(`count({__name__=~"%s(_bucket)?"})`, name)); n == 0 || err != nil {
			t.Errorf("%s is not served: %v", name, err)
		}
	}
	checkAlerts(t, p)
}

// checkAlerts checks that Prometheus can evaluate all alerts, and that none fires on a healthy hub.
func checkAlerts(t *testing.T, p prometheus) {
	t.Helper()
	var all struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	harness.Eventually(t, "all alerts are evaluated", func(context.Context) (bool, error) {
		if err := p.get("rules", url.Values{}, &all); err != nil {
			return false, err
		}
		for _, g := range all.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return harness.Holds(false, r)
				}
			}
		}
		return harness.Holds(len(all.Groups) > 0 && len(all.Groups[0].Rules) > 10, all)
	})
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			if r.State != "inactive" && r.Name != "HubAPIServiceFlapping" { // it has just started
				t.Errorf("%s is %s on a hub on which all is well", r.Name, r.State)
			}
		}
	}
}

func unmarshal(t *testing.T, name string, into any) {
	t.Helper()
	text := harness.Must(os.ReadFile(filepath.Join(harness.Root, "artifacts", "monitoring", name)))(t)
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// token returns the token of a new ServiceAccount that is bound to a role, if one is given.
func token(t *testing.T, h *localhub.Instance, namespace, role string) string {
	t.Helper()
	client := harness.Kube(t, h.AdminConfig())
	account := harness.Must(client.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: harness.Named(harness.Unique("prometheus"))}, metav1.CreateOptions{}))(t)
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: harness.Named(account.Name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
		}
		harness.Must(client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}))(t)
	}
	request := harness.Must(client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	return request.Status.Token
}

// managerPort returns the port of the metrics of hub-controller-manager.
func managerPort(t *testing.T) int {
	t.Helper()
	var ports map[string]int
	if err := json.Unmarshal(harness.Must(os.ReadFile(filepath.Join(harness.Hub(t).Dir(), "ports.json")))(t), &ports); err != nil {
		t.Fatal(err)
	}
	return ports["hub-controller-manager/metrics"]
}

// status returns the status code of a request for /metrics, or for the path in the URL.
func status(t *testing.T, address, token string) int {
	t.Helper()
	if u := harness.Must(url.Parse(address))(t); u.Path == "" {
		address += "/metrics"
	}
	request := harness.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it makes its certificate itself
	response := harness.Must(client.Do(request))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

func host(t *testing.T, config *rest.Config) string {
	t.Helper()
	if u, err := url.Parse(config.Host); err == nil && u.Host != "" {
		return u.Host
	}
	return config.Host
}

func caOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	if config.CAFile != "" {
		return string(harness.Must(os.ReadFile(config.CAFile))(t))
	}
	return string(config.CAData)
}
