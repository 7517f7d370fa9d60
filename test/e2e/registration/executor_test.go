// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// executed is a work that is applied with the rights of a ServiceAccount of the cluster.
const executed = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: executed, namespace: %s}
spec:
  executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: team, name: deployer}}}
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: executed, namespace: team}, data: {text: %s}}
`

// deployer is the ServiceAccount, with rights to the objects of the work.
const deployer = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: team}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: deployer, namespace: team}]
`

// executorIsWithdrawn verifies what hub-agent does with a work whose executor loses its rights.
func (d *delivery) executorIsWithdrawn(m *managed) {
	t := d.T
	t.Helper()
	// told waits for a status of the work, and returns the text in the cluster.
	told := func(text, want string) string {
		t.Helper()
		d.apply(executed, m.name, text)
		d.eventually("what the work says", func(got string) bool {
			generation, rest, _ := strings.Cut(got, " ")
			return strings.HasPrefix(rest, generation+" "+want)
		}, "get", "manifestwork", "executed", "-n", m.name, "-o", `jsonpath={.metadata.generation} {range .status.resourceStatus.manifests[*].conditions[?(@.type=="Applied")]}{.observedGeneration} {.status} {.message}{end}`)
		return harness.MustKubectlOf(t, m.Instance, "", "get", "configmaps", "-n", "team", "--field-selector=metadata.name=executed", "-o", "jsonpath={.items[*].data.text}")
	}
	// may waits until the cluster's authorizer observes the rights.
	may := func(allowed bool) {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:team:deployer",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "team", Resource: "configmaps", Name: "executed", Verb: "update"}}}
		harness.Eventually(t, "the rights of the account", func(ctx context.Context) (bool, error) {
			got, err := harness.Kube(t, m.AdminConfig()).AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && got.Status.Allowed == allowed, err
		})
	}
	const denied = "False Failed to apply manifest: not allowed to apply the resource"

	t.Log("An account that may not, may, and may not any more")
	if got := told("first", denied); got != "" {
		t.Errorf("it was denied, and there is %q", got)
	}
	harness.MustKubectlOf(t, m.Instance, deployer, "apply", "-f", "-")
	may(true)
	if got := told("second", "True"); got != "second" {
		t.Errorf("it was allowed, and there is %q", got)
	}
	harness.MustKubectlOf(t, m.Instance, "", "delete", "rolebinding", "deployer", "-n", "team")
	may(false)
	if got := told("third", denied); got != "second" {
		t.Errorf("it was withdrawn, and there is %q", got)
	}
}
