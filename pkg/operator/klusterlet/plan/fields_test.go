// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	arn, otherARN = "arn:aws:eks:us-west-2:123456789012:cluster/c", "arn:aws:eks:us-west-2:123456789012:cluster/d"
	ofAgents      = "agent.open-cluster-management.io/"
)

// brought has the fields that have an effect in the mode Default, each with a value that has an effect, or nil if every value has. All other fields
// must be reported as ignored, whatever their value is.
var brought = map[string]any{
	"namespace": "open-cluster-management-x", "registrationImagePullSpec": nil, "workImagePullSpec": nil, "clusterName": nil,
	"externalServerURLs.url": "https://c.example.com", "externalServerURLs.caBundle": certificate, "nodePlacement.nodeSelector": nil, "nodePlacement.tolerations.key": nil,
	"nodePlacement.tolerations.operator": nil, "nodePlacement.tolerations.value": nil, "nodePlacement.tolerations.effect": nil,
	"nodePlacement.tolerations.tolerationSeconds": nil, "deployOption.mode": nil,
	"registrationConfiguration.clientCertExpirationSeconds": 600, "registrationConfiguration.clusterAnnotations": map[string]string{ofAgents + "a": "1"},
	"registrationConfiguration.clusterLabels": nil, "registrationConfiguration.kubeAPIQPS": nil, "registrationConfiguration.kubeAPIBurst": nil,
	"registrationConfiguration.bootstrapKubeConfigs.type":                                           nil,
	"registrationConfiguration.bootstrapKubeConfigs.localSecretsConfig.kubeConfigSecrets.name":      nil,
	"registrationConfiguration.bootstrapKubeConfigs.localSecretsConfig.hubConnectionTimeoutSeconds": 300,
	"registrationConfiguration.registrationDriver.authType":                                         nil,
	"registrationConfiguration.registrationDriver.awsIrsa.hubClusterArn":                            arn,
	"registrationConfiguration.registrationDriver.awsIrsa.managedClusterArn":                        arn,
	"registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims":                    nil,
	"registrationConfiguration.clusterClaimConfiguration.reservedClusterClaimSuffixes":              nil,
	"workConfiguration.featureGates.feature":                                                        rawFeedback,
	"workConfiguration.featureGates.mode":                                                           nil,
	"workConfiguration.kubeAPIQPS":                                                                  nil, "workConfiguration.kubeAPIBurst": nil, "workConfiguration.hubKubeAPIQPS": nil,
	"workConfiguration.hubKubeAPIBurst": nil, "workConfiguration.appliedManifestWorkEvictionGracePeriod": nil,
	"hubApiServerHostAlias.ip": nil, "hubApiServerHostAlias.hostname": nil,
	"resourceRequirement.type": nil, "resourceRequirement.resourceRequirements.limits": nil,
	"resourceRequirement.resourceRequirements.requests": nil, "resourceRequirement.resourceRequirements.claims.name": nil,
	"resourceRequirement.resourceRequirements.claims.request": nil,
	"priorityClassName": nil, "clusterhub.works.role": nil, "clusterhub.works.namespaces": nil,
	"clusterhub.imagePullSecrets": nil,
}

// enumerated has the fields with enumerated values, each with a value that is not its default.
var enumerated = map[string]any{
	"deployOption.mode": operatorv1.InstallModeHosted,
	"registrationConfiguration.registrationDriver.authType":                operatorv1.AwsIrsaAuthType,
	"registrationConfiguration.addOnKubeClientRegistrationDriver.authType": "token",
	"registrationConfiguration.bootstrapKubeConfigs.type":                  operatorv1.LocalSecrets,
	"registrationConfiguration.featureGates.mode":                          operatorv1.FeatureGateModeTypeEnable,
	"workConfiguration.featureGates.mode":                                  operatorv1.FeatureGateModeTypeEnable,
	"resourceRequirement.type":                                             operatorv1.ResourceQosClassBestEffort,
}

// needed sets what some fields require to have an effect.
func needed(path string, k *operatorv1.Klusterlet) {
	switch {
	case strings.HasPrefix(path, "registrationConfiguration.registrationDriver."):
		driver := operatorv1.RegistrationDriver{AuthType: operatorv1.AwsIrsaAuthType, AwsIrsa: &operatorv1.AwsIrsa{HubClusterArn: otherARN, ManagedClusterArn: otherARN}}
		if strings.HasSuffix(path, ".authType") {
			driver.AuthType = ""
		}
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{RegistrationDriver: driver}
	case strings.HasPrefix(path, "registrationConfiguration.bootstrapKubeConfigs."):
		operatortest.SeveralHubs(k, "a", "b")
		if strings.HasSuffix(path, ".type") {
			k.Spec.RegistrationConfiguration.BootstrapKubeConfigs.Type = operatorv1.None
		}
	case path == "workConfiguration.featureGates.mode":
		k.Spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{FeatureGates: []operatorv1.FeatureGate{{Feature: rawFeedback}}}
	case path == "externalServerURLs.caBundle":
		k.Spec.ExternalServerURLs = []operatorv1.ServerURL{{URL: "https://c.example.com"}}
	case strings.HasPrefix(path, "resourceRequirement.resourceRequirements."):
		k.Spec.ResourceRequirement = &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassResourceRequirement}
	}
}

// objectsIn returns all objects of a Klusterlet's plan.
func objectsIn(k *operatorv1.Klusterlet) ([][]*unstructured.Unstructured, error) {
	p, err := New(k, "")
	if err != nil {
		return nil, err
	}
	return [][]*unstructured.Unstructured{p.Managed, p.Management, p.Pods}, nil
}

// whatBecomesOf reports whether a field changes what is deployed for a Klusterlet, and whether the field is reported as ignored.
func whatBecomesOf(t *testing.T, f operatortest.Field, before *operatorv1.Klusterlet, value any) (effect, said bool) {
	t.Helper()
	without, err := objectsIn(before)
	if err != nil {
		t.Fatal(err)
	}
	k := before.DeepCopy()
	f.Set(&k.Spec, value)
	with, err := objectsIn(k)
	if err != nil {
		return false, true // reported by the condition Applied
	}
	for _, text := range (AgentSpec{k}).Ignored() {
		said = said || f.Names(text)
	}
	return !reflect.DeepEqual(with, without), said
}

// TestFields_ApplyOrAreReportedAsIgnored verifies that no field is ignored silently: in each mode it changes what is deployed, or the condition
// FieldsIgnored names it. A new field fails this test until it does one of the two.
func TestFields_ApplyOrAreReportedAsIgnored(t *testing.T) {
	fields := operatortest.Fields(reflect.TypeFor[operatorv1.KlusterletSpec]())
	if len(fields) < 45 {
		t.Fatalf("there are only %d fields", len(fields))
	}
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Path] = true
		value, isBrought := brought[f.Path]
		values := []any{value}
		if one, ok := enumerated[f.Path]; ok {
			value, values = one, []any{one}
		} else if value != nil {
			values = append(values, nil)
		}
		for _, mode := range operatortest.Modes {
			if value == any(mode) {
				continue
			}
			alone := &operatorv1.Klusterlet{}
			alone.Name, alone.Spec.DeployOption.Mode = "k", mode
			together := alone.DeepCopy()
			needed(f.Path, together)
			for _, before := range slices.CompactFunc([]*operatorv1.Klusterlet{alone, together}, func(a, b *operatorv1.Klusterlet) bool { return reflect.DeepEqual(a, b) }) {
				for _, value := range values {
					if effect, said := whatBecomesOf(t, f, before, value); !effect && !said {
						t.Errorf("%s: spec.%s has no effect, and nothing says so (with %v): bring it to the agent in flags.go or plan.go, or name it in ignored.go",
							mode, f.Path, value)
					}
				}
			}
			if effect, said := whatBecomesOf(t, f, together, value); mode == operatorv1.InstallModeDefault && (effect != isBrought || said == isBrought) {
				t.Errorf("spec.%s is in the list of those with an effect: %t. It has one: %t. It is said to be ignored: %t", f.Path, isBrought, effect, said)
			}
		}
	}
	for path := range brought {
		if !known[path] {
			t.Errorf("there is no field %s", path)
		}
	}
}

// TestFields_AreAgentFlags verifies that the agent parses the flags to the values of the fields.
func TestFields_AreAgentFlags(t *testing.T) {
	k := &operatorv1.Klusterlet{}
	k.Name, k.Spec.DeployOption.Mode = "k", operatorv1.InstallModeSingletonHosted
	k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
		ClientCertExpirationSeconds: 3600, KubeAPIQPS: 7, KubeAPIBurst: 9,
		ClusterClaimConfiguration: &operatorv1.ClusterClaimConfiguration{MaxCustomClusterClaims: 3, ReservedClusterClaimSuffixes: []string{".a", `,"--x=y`}},
	}
	k.Spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{KubeAPIQPS: 11, KubeAPIBurst: 13, HubKubeAPIQPS: 17, HubKubeAPIBurst: 19,
		FeatureGates: []operatorv1.FeatureGate{{Feature: rawFeedback, Mode: operatorv1.FeatureGateModeTypeEnable}, {Feature: "Other"}}}
	o := started(t, k)
	got := fmt.Sprintf("%+v %+v %+v %+v %t", o.Spoke.Requests, o.Works.Requests, o.Works.HubRequests, o.Claims, o.FeatureGate.Enabled(rawFeedback))
	if want := `{QPS:7 Burst:9} {QPS:11 Burst:13} {QPS:17 Burst:19} {Most:3 Reserved:[.a ,"--x=y]} true`; got != want {
		t.Errorf("the agent understands %s, want %s", got, want)
	}
	if args := (AgentSpec{k}).registrationArgs(); !slices.Contains(args, "--client-cert-expiration-seconds=3600") {
		t.Errorf("the flags are %q", args)
	}
	k.Spec.ExternalServerURLs = []operatorv1.ServerURL{{URL: "https://a"}, {URL: `https://b/","x`, CABundle: []byte(certificate)}, {URL: "https://c", CABundle: []byte("no PEM")}}
	told, err := registration.ParseAddresses(started(t, k).Addresses)
	if err != nil || len(told) != 2 || told[0].URL != "https://a" || told[1].URL != `https://b/","x` || string(told[1].CABundle) != certificate {
		t.Errorf("the agent tells the hub of %+v: %v", told, err)
	}
	if ignored := strings.Join(AgentSpec{k}.Ignored(), "; "); !strings.Contains(ignored, `the caBundle of "https://c" must be certificates in PEM`) {
		t.Errorf("it is said %q", ignored)
	}

	// Values with which the agent would not start are left out, and defaults need no flag.
	r, w := k.Spec.RegistrationConfiguration, k.Spec.WorkConfiguration
	r.ClientCertExpirationSeconds, r.KubeAPIQPS, r.KubeAPIBurst, r.ClusterClaimConfiguration.MaxCustomClusterClaims = 599, -1, 100, -1
	w.KubeAPIQPS, w.KubeAPIBurst, w.HubKubeAPIQPS, w.HubKubeAPIBurst = 50, 0, -2147483648, 100
	if o, usual := started(t, k), agent.NewOptions(); o.Spoke.Requests != usual.Spoke.Requests || o.Works.Requests != usual.Works.Requests ||
		o.Works.HubRequests != usual.Works.HubRequests || o.Claims.Most != usual.Claims.Most {
		t.Errorf("the agent understands %+v, %+v, %+v", o.Spoke.Requests, o.Works, o.Claims)
	}
	for _, n := range slices.Concat(AgentSpec{k}.registrationNumbers(), AgentSpec{k}.workNumbers()) {
		if said := len(n.ignored()) > 0; said != (n.value < 0 || n.value == 599) || len(n.args()) > 0 {
			t.Errorf("%s is %d, and is said to be ignored: %t; the flags are %q", n.field, n.value, said, n.args())
		}
	}
}
