// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/agent"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// certificate is a certificate in PEM.
var certificate = func() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	own, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "test"}, key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: own.Raw}))
}()

// started returns the flags of the agent, as parsed by its first pod. Every pod must start with its flags.
func started(t *testing.T, k *operatorv1.Klusterlet) (first *agent.Options) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	p, err := planOf(k, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range p.pods {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "template", "spec", "containers")
		args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		o, flags := agent.NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := flags.Parse(args); err != nil {
			t.Fatalf("%s does not start with %q: %v", pod.GetName(), args, err)
		}
		if err := o.Validate(); err != nil {
			t.Fatalf("%s does not start with %q: %v", pod.GetName(), args, err)
		}
		if first == nil {
			first = o
		}
	}
	return first
}

// TestFields_InvalidValuesDoNotPreventStart: pods start whatever a user writes: values that the agent would reject are not passed to it, and are
// reported. A definition of a different version may allow what this one rejects.
func TestFields_InvalidValuesDoNotPreventStart(t *testing.T) {
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprintf("l%02d", i)] = "v"
	}
	for says, change := range map[string]func(*operatorv1.KlusterletSpec, *operatorv1.RegistrationConfiguration){
		`clusterAnnotations: these have no effect: "example.com/a" must begin with ` + ofAgents: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterAnnotations = map[string]string{ofAgents + "a": "1", "example.com/a": "2"}
		},
		`"agent.open-cluster-management.io" must begin with`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterAnnotations = map[string]string{ofAgents + "a": "1", "agent.open-cluster-management.io": "2"}
		},
		`is not the name of an annotation`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterAnnotations = map[string]string{ofAgents + "a": "1", ofAgents + `b=c,"--x`: "2", ofAgents: "3", ofAgents + "b/c": "4"}
		},
		`clusterLabels: these have no effect: "a b" is not a label key`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterLabels = map[string]string{"l00": "v", "a b": "v"}
		},
		`the value of b: `: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterLabels = map[string]string{"l00": "v", "b": "v,c=d"}
		},
		`"l16" is more than the first 16`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) { r.ClusterLabels = many },
		`spec.externalServerURLs: these are not reported to the hub: "http://c.example.com" must be an https URL`: func(s *operatorv1.KlusterletSpec, _ *operatorv1.RegistrationConfiguration) {
			s.ExternalServerURLs = []operatorv1.ServerURL{{URL: "http://c.example.com"}}
		},
	} {
		for _, mode := range allModes {
			k := &operatorv1.Klusterlet{}
			k.Name, k.Spec.DeployOption.Mode = "k", mode
			k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
			change(&k.Spec, k.Spec.RegistrationConfiguration)
			if ignored := strings.Join(agentSpec{k}.ignored(), "; "); !strings.Contains(ignored, says) {
				t.Errorf("%s: it is said %q, want %q", mode, ignored, says)
			}
			for key, value := range started(t, k).ClusterAnnotations {
				if key != ofAgents+"a" || value != "1" {
					t.Errorf("%s: the agent is told to set the annotation %s=%s", mode, key, value)
				}
			}
			// Valid values beside them are passed.
			args := strings.Join(agentSpec{k}.registrationArgs(), " ")
			if r := k.Spec.RegistrationConfiguration; len(r.ClusterAnnotations) > 0 != strings.Contains(args, "--cluster-annotations="+ofAgents+"a=1") ||
				len(r.ClusterLabels) > 0 != strings.Contains(args, "--cluster-labels=l00=v") {
				t.Errorf("%s: the flags are %s", mode, args)
			}
		}
	}
}

// TestFields_IgnoredFeatureGates: a feature gate of Open Cluster Management that asks for what the agent does anyway is not reported. One
// that asks for the opposite has no effect, like unknown ones.
func TestFields_IgnoredFeatureGates(t *testing.T) {
	gate := func(name string, mode operatorv1.FeatureGateModeType) []operatorv1.FeatureGate {
		return []operatorv1.FeatureGate{{Feature: name, Mode: mode}}
	}
	on, off := operatorv1.FeatureGateModeTypeEnable, operatorv1.FeatureGateModeTypeDisable
	for _, test := range []struct {
		name                string
		mode                operatorv1.FeatureGateModeType
		registration, works string
	}{
		{"ClusterClaim", on, "", "ClusterClaim"},
		{"ClusterClaim", off, "ClusterClaim (which cannot be turned off)", "ClusterClaim"},
		{"AddonManagement", off, "", "AddonManagement"},
		{"AddonManagement", "", "", "AddonManagement"},
		{"AddonManagement", on, "AddonManagement (which cannot be turned on)", "AddonManagement"},
		{"MultipleHubs", off, "", "MultipleHubs"},
		{"ExecutorValidatingCaches", off, "ExecutorValidatingCaches", ""},
		{"ExecutorValidatingCaches", on, "ExecutorValidatingCaches", "ExecutorValidatingCaches (which cannot be turned on)"},
		{"RawFeedbackJsonString", on, "RawFeedbackJsonString", ""},
		{"RawFeedbackJsonString", off, "RawFeedbackJsonString", ""},
		{"Other", off, "Other", "Other"},
	} {
		k := &operatorv1.Klusterlet{}
		for i, want := range []string{test.registration, test.works} {
			k.Spec = (operatorv1.KlusterletSpec{RegistrationConfiguration: &operatorv1.RegistrationConfiguration{FeatureGates: gate(test.name, test.mode)}})
			if i == 1 {
				k.Spec = operatorv1.KlusterletSpec{WorkConfiguration: &operatorv1.WorkAgentConfiguration{FeatureGates: gate(test.name, test.mode)}}
			}
			valid := condition(withConditions(k), operatorv1.ConditionValidFeatureGates)
			said := strings.Join(agentSpec{k}.ignored(), "; ")
			if want == "" && (said != "" || valid.Status != "True") || want != "" && (!strings.HasSuffix(said, "these have no effect: "+want) || valid.Status != "False" || !strings.HasSuffix(valid.Message, want)) {
				t.Errorf("%s is %q, of works: %t: it is said %q, and %+v", test.name, test.mode, i == 1, said, valid)
			}
		}
	}
}

// withConditions returns a Klusterlet with the conditions that depend on its spec alone.
func withConditions(k *operatorv1.Klusterlet) *operatorv1.Klusterlet {
	k = k.DeepCopy()
	newReport(k).into(k)
	return k
}

// TestPlan_RejectsInvalid: a spec is rejected if no agent could start with it.
func TestPlan_RejectsInvalid(t *testing.T) {
	ofAWS := func(aws *operatorv1.AwsIrsa) func(*operatorv1.KlusterletSpec) {
		return func(s *operatorv1.KlusterletSpec) {
			s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
				RegistrationDriver: operatorv1.RegistrationDriver{AuthType: operatorv1.AwsIrsaAuthType, AwsIrsa: aws}}
		}
	}
	for says, change := range map[string]func(*operatorv1.KlusterletSpec){
		"spec.clusterName: no cluster can be accepted":            func(s *operatorv1.KlusterletSpec) { s.ClusterName = "managed-clusters" },
		"spec.clusterName must be a DNS label":                    func(s *operatorv1.KlusterletSpec) { s.ClusterName = "a.b" },
		"registrationDriver.awsIrsa must be there":                ofAWS(nil),
		"awsIrsa.hubClusterArn: \"x\" is not the ARN":             ofAWS(&operatorv1.AwsIrsa{HubClusterArn: "x", ManagedClusterArn: arn}),
		"awsIrsa.managedClusterArn: \"\" is not the ARN":          ofAWS(&operatorv1.AwsIrsa{HubClusterArn: arn}),
		"awsIrsa.managedClusterArn: the cluster is in the AWS pa": ofAWS(&operatorv1.AwsIrsa{HubClusterArn: arn, ManagedClusterArn: "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"}),
	} {
		for _, mode := range allModes {
			k := &operatorv1.Klusterlet{}
			k.Name, k.Spec.DeployOption.Mode = "k", mode
			change(&k.Spec)
			if _, err := planOf(k, ""); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", mode, err, says)
			}
		}
	}
}

// TestPlan_AWSRole: on the managed cluster, each part assumes the role of that cluster. Pods on another cluster do not.
func TestPlan_AWSRole(t *testing.T) {
	for _, mode := range allModes {
		k := &operatorv1.Klusterlet{}
		k.Name, k.Spec.DeployOption.Mode = "k", mode
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{RegistrationDriver: operatorv1.RegistrationDriver{AuthType: operatorv1.AwsIrsaAuthType,
			AwsIrsa: &operatorv1.AwsIrsa{HubClusterArn: "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1",
				ManagedClusterArn: "arn:aws:eks:us-west-2:123456789012:cluster/managed-cluster1"}}}
		p, err := planOf(k, "")
		if err != nil {
			t.Fatal(err)
		}
		want := "arn:aws:iam::123456789012:role/ocm-managed-cluster-7f8141296c75f2871e3d030f85c35692"
		if k.IsDetached() {
			want = ""
		}
		for _, o := range slices.Concat(p.managed, p.management) {
			if got := o.GetAnnotations()["eks.amazonaws.com/role-arn"]; o.GetKind() == "ServiceAccount" && got != want {
				t.Errorf("%s: the role of %s is %q, want %q", mode, o.GetName(), got, want)
			}
		}
	}
}
