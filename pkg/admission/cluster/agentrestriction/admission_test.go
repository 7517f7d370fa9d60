// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentrestriction_test

import (
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/agentrestriction"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var agents = map[string]user.Info{
	"by certificate": &user.DefaultInfo{
		Name: registration.ClusterUser("c1", "a"), Groups: []string{registration.ClusterGroup("c1"), registration.ManagedClustersGroup},
	},
	"by its name alone":  &user.DefaultInfo{Name: registration.ClusterUser("c1", "a")},
	"by its group alone": &user.DefaultInfo{Name: "a", Groups: []string{"x", registration.ManagedClustersGroup}},
	"by AWS IAM":         &user.DefaultInfo{Name: "arn:aws:sts::1:assumed-role/r/s", Groups: []string{registration.AWSGroup("c1")}},
	"of an addon":        &user.DefaultInfo{Name: "system:open-cluster-management:cluster:c1:addon:x:agent:y"},
}

var people = map[string]user.Info{
	"a user":                 at.User,
	"a group of such a name": &user.DefaultInfo{Name: "ann", Groups: []string{"open-cluster-management:admins"}},
	"the hub":                &user.DefaultInfo{Name: "system:serviceaccount:open-cluster-management-hub:registration-controller-sa"},
}

func stored() *cluster.ManagedCluster {
	return &cluster.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c1", Finalizers: []string{registration.Finalizer},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Namespace", Name: "n", UID: "1"}},
			Annotations:     map[string]string{registration.AnnotationAgentKey: "ab", "example.com/a": "b"},
		},
		Spec: cluster.ManagedClusterSpec{Taints: []cluster.Taint{{Key: registration.TaintUnreachable, Effect: "NoSelect"}}},
	}
}

func write(by user.Info, subresource string, change func(*cluster.ManagedCluster)) (*cluster.ManagedCluster, admission.Attributes) {
	updated := stored()
	change(updated)
	return updated, at.Request{Object: updated, Old: stored(), Subresource: subresource, By: by}.Attributes()
}

func TestAdmission_AgentsCannotChangeOwnersFinalizersTaints(t *testing.T) {
	for what, change := range map[string]func(*cluster.ManagedCluster){
		"an owner": func(c *cluster.ManagedCluster) { c.OwnerReferences[0].UID = "2" },
		"no owner": func(c *cluster.ManagedCluster) { c.OwnerReferences = nil },
		"a finalizer": func(c *cluster.ManagedCluster) {
			c.Finalizers = append(c.Finalizers, "agent.open-cluster-management.io/own")
		},
		"no finalizer": func(c *cluster.ManagedCluster) { c.Finalizers = nil },
		"no taint":     func(c *cluster.ManagedCluster) { c.Spec.Taints = nil },
		"a taint": func(c *cluster.ManagedCluster) {
			c.Spec.Taints = append(c.Spec.Taints, cluster.Taint{Key: "a", Effect: "NoSelect"})
		},
		"another taint":   func(c *cluster.ManagedCluster) { c.Spec.Taints[0].Effect = "PreferNoSelect" },
		"all of it and a": func(c *cluster.ManagedCluster) { c.Finalizers, c.Spec.Taints, c.OwnerReferences = nil, nil, nil },
	} {
		for _, subresource := range []string{"", "status", "label", "accept"} {
			for who, by := range agents {
				_, a := write(by, subresource, change)
				if _, err := at.Validate(t, agentrestriction.New(), a); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an agent of a cluster cannot change") {
					t.Errorf("%s, /%s, %s: %v", who, subresource, what, err)
				}
			}
			for who, by := range people {
				_, a := write(by, subresource, change)
				if _, err := at.Validate(t, agentrestriction.New(), a); err != nil {
					t.Errorf("%s, /%s, %s: %v", who, subresource, what, err)
				}
			}
		}
	}
}

func TestAdmission_AgentWritesAreAdmitted(t *testing.T) {
	for who, by := range agents {
		updated, a := write(by, "", func(c *cluster.ManagedCluster) {
			c.Annotations["agent.open-cluster-management.io/x"], c.Annotations["example.com/a"] = "y", "c"
			c.Spec.ManagedClusterClientConfigs = []cluster.ClientConfig{{URL: "https://a"}}
			c.Spec.HubAcceptsClient = !c.Spec.HubAcceptsClient
		})
		want := maps.Clone(updated.Annotations)
		if err := agentrestriction.New().Admit(t.Context(), a, nil); err != nil || !maps.Equal(updated.Annotations, want) {
			t.Errorf("%s: %v, %v", who, updated.Annotations, err)
		}
		if _, err := at.Validate(t, agentrestriction.New(), a); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

func TestAdmission_HubAnnotationsArePreserved(t *testing.T) {
	hubs := []string{
		registration.AnnotationAgentKey, registration.AnnotationManagedClusterARN, registration.AnnotationManagedClusterARNOfSeed,
		registration.AnnotationRoleSuffix, registration.AnnotationAutoAccepted, registration.AnnotationSkipClockCheck,
		"registration.clusterhub.dev/anything", "clusterhub.dev/anything", "import.open-cluster-management.io/anything",
	}
	for _, key := range hubs {
		for what, change := range map[string]func(*cluster.ManagedCluster){
			"set":    func(c *cluster.ManagedCluster) { c.Annotations[key] = "evil" },
			"remove": func(c *cluster.ManagedCluster) { delete(c.Annotations, key) },
			"clear":  func(c *cluster.ManagedCluster) { c.Annotations = nil },
		} {
			for who, by := range agents {
				updated, a := write(by, "", change)
				var warnings at.Warnings
				err := agentrestriction.New().Admit(warning.WithWarningRecorder(t.Context(), &warnings), a, nil)
				was, had := stored().Annotations[key]
				is, has := updated.Annotations[key]
				if err != nil || was != is || had != has {
					t.Errorf("%s, %s of %s: %v, %v", who, what, key, updated.Annotations, err)
				}
				if changed := what == "set" || updated.Annotations[registration.AnnotationAgentKey] == "ab" && what == "clear" || had; changed &&
					(len(warnings) != 1 || !strings.Contains(warnings[0], "were not changed")) {
					t.Errorf("%s, %s of %s: the warnings are %q", who, what, key, warnings)
				}
			}
			for who, by := range people {
				updated, a := write(by, "", change)
				want := maps.Clone(updated.Annotations)
				if err := agentrestriction.New().Admit(t.Context(), a, nil); err != nil || !maps.Equal(updated.Annotations, want) {
					t.Errorf("%s, %s of %s: %v, %v", who, what, key, updated.Annotations, err)
				}
			}
		}
	}
}
