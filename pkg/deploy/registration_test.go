// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRegistrationKustomization_Builds: the kustomization for users builds a hub like any other, with these flags and the role.
func TestRegistrationKustomization_Builds(t *testing.T) {
	const hub, role = "arn:aws:eks:eu-west-1:123456789012:cluster/hub", "arn:aws:iam::123456789012:role/hub_managed-cluster-identity-creator"
	for name, test := range map[string]struct {
		drivers      []string
		hubARN, role string
		more         []string
		want         []string
	}{
		"by certificate": {drivers: []string{"csr"}, want: []string{"--registration-drivers=csr"}},
		"with a path": {[]string{"awsirsa"}, hub, role, []string{"--hub-role-path=/a/"},
			[]string{"--registration-drivers=awsirsa", "--hub-cluster-arn=" + hub, "--hub-role-path=/a/"}},
		"by either": {[]string{"awsirsa", "csr"}, hub, role, nil, []string{"--registration-drivers=awsirsa,csr", "--hub-cluster-arn=" + hub}},
	} {
		t.Run(name, func(t *testing.T) {
			annotated := 0
			for _, o := range kustomizedFile(t, "user/artifacts", []byte(RegistrationKustomization(test.drivers, test.hubARN, test.role, test.more...))) {
				if o.GetAnnotations()["eks.amazonaws.com/role-arn"] == test.role && test.role != "" {
					annotated++
				}
				containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				if o.GetKind() != "Deployment" || len(containers) == 0 {
					continue
				}
				args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
				added := slices.DeleteFunc(args, func(arg string) bool {
					return !strings.HasPrefix(arg, "--registration-drivers") && !strings.HasPrefix(arg, "--hub-cluster-arn") && !strings.HasPrefix(arg, "--hub-role")
				})
				if isManager := o.GetName() == Manager && o.GetNamespace() == ManagerNamespace; isManager != slices.Equal(added, test.want) || !isManager && len(added) > 0 {
					t.Errorf("%s has the flags %q", o.GetName(), added)
				}
			}
			if want := len(test.role) / max(len(test.role), 1); annotated != want {
				t.Errorf("%d objects have the role, want %d", annotated, want)
			}
		})
	}
}
