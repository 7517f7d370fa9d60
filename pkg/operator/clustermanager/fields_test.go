// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// brought has the fields that have an effect in the mode Detached if what they require is set. The value is one that has an effect, or nil if every
// value has. All other fields must be reported as ignored.
var brought = map[string]any{
	"nodePlacement.nodeSelector": nil, "nodePlacement.tolerations.key": nil, "nodePlacement.tolerations.operator": nil,
	"nodePlacement.tolerations.value": nil, "nodePlacement.tolerations.effect": nil, "nodePlacement.tolerations.tolerationSeconds": nil,
	"deployOption.mode":                          nil,
	"registrationConfiguration.autoApproveUsers": nil, "registrationConfiguration.featureGates.feature": gateDefaultSet,
	"registrationConfiguration.featureGates.mode": nil, "workConfiguration.featureGates.feature": gateDefaultSet,
	"workConfiguration.featureGates.mode": nil, "placementConfiguration.featureGates.feature": gateDefaultSet,
	"placementConfiguration.featureGates.mode":                                     nil,
	"registrationConfiguration.registrationDrivers.authType":                       nil,
	"registrationConfiguration.registrationDrivers.csr.autoApprovedIdentities":     nil,
	"registrationConfiguration.registrationDrivers.awsirsa.hubClusterArn":          nil,
	"registrationConfiguration.registrationDrivers.awsirsa.tags":                   nil,
	"registrationConfiguration.registrationDrivers.awsirsa.autoApprovedIdentities": nil,
	"resourceRequirement.type":                                                     nil, "resourceRequirement.resourceRequirements.limits": nil, "resourceRequirement.resourceRequirements.requests": nil,
	"resourceRequirement.resourceRequirements.claims.name": nil, "resourceRequirement.resourceRequirements.claims.request": nil,
	"clusterhub.apiServer.image": nil, "clusterhub.apiServer.replicas": nil, "clusterhub.apiServer.address.host": "a.example.com",
	"clusterhub.apiServer.address.port": nil, "clusterhub.controllerManager.image": nil, "clusterhub.controllerManager.replicas": nil,
	"clusterhub.etcd.type": nil, "clusterhub.etcd.embedded.size": nil, "clusterhub.etcd.embedded.storageClassName": nil,
	"clusterhub.etcd.external.servers": "https://etcd:2379", "clusterhub.etcd.external.secretName": nil, "clusterhub.components": nil,
}

// enumerated has the fields with enumerated values, each with a value that is not its default.
var enumerated = map[string]any{
	"deployOption.mode":                                      operatorv1.InstallModeHosted,
	"workConfiguration.workDriver":                           operatorv1.WorkDriverTypeMqtt,
	"registrationConfiguration.registrationDrivers.authType": operatorv1.AwsIrsaAuthType,
	"registrationConfiguration.featureGates.mode":            operatorv1.FeatureGateModeTypeEnable,
	"workConfiguration.featureGates.mode":                    operatorv1.FeatureGateModeTypeEnable,
	"placementConfiguration.featureGates.mode":               operatorv1.FeatureGateModeTypeEnable,
	"resourceRequirement.type":                               operatorv1.ResourceQosClassBestEffort,
	"clusterhub.etcd.type":                                   operatorv1.HubEtcdExternal,
	"clusterhub.components":                                  "leftovers",
}

// needed sets what some fields require to have an effect.
func needed(path string, cm *operatorv1.ClusterManager) {
	gates := []operatorv1.FeatureGate{{Feature: gateDefaultSet}}
	auto := []operatorv1.FeatureGate{{Feature: gateAutoApproval, Mode: operatorv1.FeatureGateModeTypeEnable}}
	drivers := func(driver operatorv1.RegistrationDriverHub) *operatorv1.RegistrationHubConfiguration {
		return &operatorv1.RegistrationHubConfiguration{FeatureGates: auto, RegistrationDrivers: []operatorv1.RegistrationDriverHub{driver}}
	}
	spec := &cm.Spec
	switch {
	case path == "registrationConfiguration.featureGates.mode":
		spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{FeatureGates: gates}
	case path == "workConfiguration.featureGates.mode":
		spec.WorkConfiguration = &operatorv1.WorkConfiguration{FeatureGates: gates}
	case path == "placementConfiguration.featureGates.mode":
		spec.PlacementConfiguration = &operatorv1.PlacementConfiguration{FeatureGates: gates}
	case path == "registrationConfiguration.autoApproveUsers":
		spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{FeatureGates: auto}
	case strings.Contains(path, "registrationDrivers.awsirsa."):
		spec.RegistrationConfiguration = drivers(operatorv1.RegistrationDriverHub{AuthType: operatorv1.AwsIrsaAuthType, AwsIrsa: &operatorv1.AwsIrsaConfig{}})
	case strings.Contains(path, "registrationDrivers.csr."), strings.Contains(path, "registrationDrivers.grpc."):
		spec.RegistrationConfiguration = drivers(operatorv1.RegistrationDriverHub{})
	case strings.HasPrefix(path, "resourceRequirement.resourceRequirements."):
		spec.ResourceRequirement = &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassResourceRequirement}
	case path == "clusterhub.apiServer.address.port":
		spec.Clusterhub.APIServer.Address = &operatorv1.HubAPIServerAddress{Host: "a.example.com"}
	case strings.HasPrefix(path, "clusterhub.etcd.external."), path == "clusterhub.apiServer.replicas", path == "clusterhub.etcd.type":
		external := &operatorv1.HubEtcdExternalServers{Servers: []string{"https://other:2379"}}
		spec.Clusterhub.Etcd = operatorv1.HubEtcd{Type: operatorv1.HubEtcdExternal, External: external}
		if path == "clusterhub.etcd.type" {
			spec.Clusterhub.Etcd.Type = operatorv1.HubEtcdEmbedded
		}
	}
}

func objectsIn(cm *operatorv1.ClusterManager) ([][]*unstructured.Unstructured, error) {
	p, err := planOf(cm, nil, "way")
	if err != nil {
		return nil, err
	}
	return [][]*unstructured.Unstructured{p.hub, p.services, p.management}, nil
}

// whatBecomesOf reports whether a field changes what is deployed for a hub, and whether the field is reported as ignored.
func whatBecomesOf(t *testing.T, f operatortest.Field, before *operatorv1.ClusterManager, value any) (effect, said bool) {
	t.Helper()
	without, err := objectsIn(before)
	if err != nil {
		t.Fatal(err)
	}
	cm := before.DeepCopy()
	f.Set(&cm.Spec, value)
	with, err := objectsIn(cm)
	if err != nil {
		return false, true // reported by the condition Applied
	}
	for _, text := range ignored(cm) {
		said = said || f.Names(text)
	}
	// ValidFeatureGates reports it.
	said = said || len(unknownGates(cm)) > len(unknownGates(before))
	return !reflect.DeepEqual(with, without), said
}

// TestFields_ApplyOrAreReportedAsIgnored verifies that no field is ignored silently: in each mode it changes what is deployed, or a condition names
// it. A new field fails this test until it does one of the two.
func TestFields_ApplyOrAreReportedAsIgnored(t *testing.T) {
	fields := operatortest.Fields(reflect.TypeFor[operatorv1.ClusterManagerSpec]())
	if len(fields) < 70 {
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
		for _, mode := range []operatorv1.InstallMode{operatorv1.InstallModeDefault, operatorv1.InstallModeDetached, operatorv1.InstallModeHosted} {
			if value == any(mode) {
				continue
			}
			alone := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}
			alone.Spec.DeployOption.Mode, alone.Spec.Clusterhub = mode, &operatorv1.ClusterManagerClusterhub{}
			together := alone.DeepCopy()
			needed(f.Path, together)
			for _, before := range slices.CompactFunc([]*operatorv1.ClusterManager{alone, together},
				func(a, b *operatorv1.ClusterManager) bool { return reflect.DeepEqual(a, b) }) {
				for _, value := range values {
					if effect, said := whatBecomesOf(t, f, before, value); !effect && !said {
						t.Errorf("%s: spec.%s has no effect, and nothing says so (with %v): bring it to the servers in plan.go, or name it in spec.go",
							mode, f.Path, value)
					}
				}
			}
			if effect, said := whatBecomesOf(t, f, together, value); mode == operatorv1.InstallModeDetached && (effect != isBrought || said == isBrought) {
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
