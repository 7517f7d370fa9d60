// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestCertificates_BootstrapTokenFlood creates 200 certificate requests with a bootstrap token, and verifies that the cost is limited to
// these 200.
func TestCertificates_BootstrapTokenFlood(t *testing.T) {
	h := harness.Hub(t)
	thief := newThief(t, h)
	cluster := harness.Unique("flooded")
	var last string
	for range 200 {
		last, _ = thief.request(t, cluster, nil)
	}
	requests := harness.Kube(t, h.AdminConfig()).CertificatesV1().CertificateSigningRequests()
	harness.Eventually(t, "20 requests are left, with the newest", func(ctx context.Context) (bool, error) {
		list, err := requests.List(ctx, metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + cluster})
		if err != nil {
			return false, err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return len(names) == 20 && strings.Contains(strings.Join(names, " "), last), nil
	})
}
