// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// scrape reads the metrics of so many pods, those whose names begin with a prefix, as a Prometheus does whose ServiceAccount has the role, and
// wants a metric among them. Others get none.
func scrape(t *testing.T, cluster *localhub.Instance, node *kubelet.Kubelet, namespace, prefix string, pods int, role, metric string) {
	t.Helper()
	account := func(name string) (token string) {
		harness.MustKubectlOf(t, cluster, "", "create", "serviceaccount", name)
		return strings.TrimSpace(harness.MustKubectlOf(t, cluster, "", "create", "token", name))
	}
	name := harness.Unique("prometheus")
	token, others := account(name), account(name+"-without-role")
	harness.MustKubectlOf(t, cluster, "", "create", "clusterrolebinding", name, "--clusterrole", role, "--serviceaccount", "default:"+name)
	for _, pod := range harness.Must(harness.Kube(t, cluster.AdminConfig()).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{}))(t).Items {
		if !strings.HasPrefix(pod.Name, prefix) || pod.DeletionTimestamp != nil {
			continue
		}
		pods--
		harness.Eventually(t, "the metrics of "+pod.Name+" are read", func(ctx context.Context) (bool, error) {
			code, body, err := metricsOf(ctx, node, namespace, pod.Name, token)
			if err != nil || code != http.StatusOK {
				return false, fmt.Errorf("%d %v", code, err)
			}
			return harness.Holds(strings.Contains("\n"+body, "\n"+metric), body)
		})
		for as, want := range map[string]int{"": http.StatusUnauthorized, "no token": http.StatusUnauthorized, others: http.StatusForbidden} {
			if code, body, err := metricsOf(t.Context(), node, namespace, pod.Name, as); code != want || err != nil || strings.Contains(body, metric) {
				t.Errorf("%s, with a token of %d letters and without the role: %d %v, want %d", pod.Name, len(as), code, err, want)
			}
		}
	}
	if pods != 0 {
		t.Errorf("there are %d pods too few of %s", pods, prefix)
	}
}

// metricsOf are those of a pod, and with which status they come.
func metricsOf(ctx context.Context, node *kubelet.Kubelet, namespace, pod, token string) (int, string, error) {
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the certificate is self-signed
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return node.Dial(ctx, namespace, pod, 8443) },
	}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+pod+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
