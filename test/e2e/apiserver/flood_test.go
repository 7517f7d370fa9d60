// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// agentConfig returns a client configuration of the agent of a cluster.
func agentConfig(h *localhub.Instance, cluster string) *rest.Config {
	return h.UserConfig(registration.ClusterUser(cluster, "agent"), registration.ClusterGroup(cluster), registration.ManagedClustersGroup,
		"system:authenticated")
}

// TestAgents_HaveOwnPriorityLevel verifies that the rendered manifests have the same flow schemas as the local hub, and that both API servers
// use them.
func TestAgents_HaveOwnPriorityLevel(t *testing.T) {
	base := string(harness.Must(exec.CommandContext(t.Context(), harness.Binary(t, "kubectl"), "kustomize", harness.Overlay("base")).Output())(t))
	client := harness.Kube(t, harness.Hub(t).AdminConfig())
	for name, users := range map[string]map[string][]string{
		"clusterhub-agents": {
			registration.ClusterUser("c1", "agent"): {registration.ClusterGroup("c1"), registration.ManagedClustersGroup},
			registration.AWSGroup("c1"):             {registration.AWSGroup("c1"), registration.AWSManagedClustersGroup},
			"system:bootstrap:abcdef":               {"system:bootstrappers", "system:bootstrappers:managedcluster"},
			"system:serviceaccount:open-cluster-management:agent-registration-bootstrap": {"system:serviceaccounts"},
		},
		"clusterhub-apiserver": {
			"system:serviceaccount:clusterhub-system:hub-apiserver": {"system:serviceaccounts", "system:serviceaccounts:clusterhub-system"},
		},
	} {
		schema := harness.Must(client.FlowcontrolV1().FlowSchemas().Get(t.Context(), name, metav1.GetOptions{}))(t)
		level := harness.Must(client.FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), name, metav1.GetOptions{}))(t)
		if schema.Spec.DistinguisherMethod == nil || schema.Spec.DistinguisherMethod.Type != flowcontrolv1.FlowDistinguisherMethodByUserType {
			t.Errorf("%s does not tell users apart", name)
		}
		if strings.Count(base, "name: "+name+"\n") < 3 { // the schema, its level, and the reference to the level
			t.Errorf("artifacts/deploy/base has no %s", name)
		}
		for user, groups := range users {
			groups = append(groups, "system:authenticated")
			for where, config := range map[string]*rest.Config{
				"kube-apiserver": harness.Hub(t).UserConfig(user, groups...), "hub-apiserver": harness.Hub(t).HubAPIServerUserConfig(1, user, groups...),
			} {
				// A replica observes a new schema slightly later than the front.
				harness.Eventually(t, where+" classifies "+user, func(ctx context.Context) (bool, error) {
					httpClient, err := rest.HTTPClientFor(config)
					if err != nil {
						return false, err
					}
					request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/apis/"+harness.ClusterGroup+"/v1/managedclusters/c1", nil)
					if err != nil {
						return false, err
					}
					response, err := httpClient.Do(request)
					if err != nil {
						return false, err
					}
					_ = response.Body.Close()
					flow, priority := response.Header.Values(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), response.Header.Values(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
					if !slices.Contains(flow, string(schema.UID)) || !slices.Contains(priority, string(level.UID)) {
						return false, fmt.Errorf("classified as %q, %q, want %s, %s", flow, priority, schema.UID, level.UID)
					}
					return true, nil
				})
			}
		}
	}
}

// TestFlowControl_IsValid verifies that a real kube-apiserver stores the manifests unchanged.
func TestFlowControl_IsValid(t *testing.T) {
	out := harness.Must(exec.CommandContext(t.Context(), harness.Binary(t, "kubectl"), "kustomize", harness.Overlay("base")).Output())(t)
	var found []string
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		var object map[string]any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if object["apiVersion"] != flowcontrolv1.SchemeGroupVersion.String() {
			continue
		}
		body := harness.Must(json.Marshal(object))(t)
		if out, err := harness.Kubectl(t, string(body), "apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", "-"); err != nil ||
			strings.Contains(out, "Warning") {
			t.Errorf("%v: %s", err, out)
		}
		found = append(found, object["kind"].(string))
	}
	if len(found) != 4 {
		t.Errorf("found %q", found)
	}
}

// reporter writes a status of some size, and the lease, as an agent does.
type reporter struct {
	config  *rest.Config
	cluster string
	size    int
	turn    atomic.Int64
}

func (r *reporter) status(ctx context.Context, t *testing.T) error {
	var conditions []map[string]any
	for left, i := r.size, 0; left > 0; left, i = left-30000, i+1 {
		conditions = append(conditions, map[string]any{"type": fmt.Sprintf("Flood%d", i), "status": "True", "reason": "Flood",
			"lastTransitionTime": "2024-01-01T00:00:00Z", "message": fmt.Sprint(r.turn.Add(1), strings.Repeat("x", min(left, 30000)))})
	}
	body := harness.Must(json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}}))(t)
	// Rejections are counted, not retried.
	return harness.Ours(t, r.config).ClusterV1().RESTClient().Patch(types.MergePatchType).Resource("managedclusters").Name(r.cluster).
		SubResource("status").Body(body).MaxRetries(0).Do(ctx).Error()
}

func (r *reporter) lease(ctx context.Context, t *testing.T) error {
	leases := harness.Kube(t, r.config).CoordinationV1().Leases(r.cluster)
	old, err := leases.Get(ctx, registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.NowMicro()
	old.Spec.RenewTime = &now
	_, err = leases.Update(ctx, old, metav1.UpdateOptions{})
	return err
}

// joined creates a cluster and the rights of its agent on the shared hub, where no controller grants them.
func joined(t *testing.T, size int) *reporter {
	t.Helper()
	name := harness.NewNamespace(t)
	harness.NewManagedCluster(t, name, nil)
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: registration.LeaseName, Namespace: name}}
	harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).CoordinationV1().Leases(name).Create(t.Context(), lease, metav1.CreateOptions{}))(t)
	harness.Grant(t, harness.Hub(t), harness.Unique("agent"), registration.ClusterUser(name, "agent"), harness.Rule("patch", "managedclusters/status", name),
		harness.RuleIn("coordination.k8s.io", "get,update", "leases"))
	return &reporter{config: agentConfig(harness.Hub(t), name), cluster: name, size: size}
}

// reporting returns the median duration of an agent's writes.
func (r *reporter) reporting(t *testing.T) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 20 {
		begun := time.Now()
		if err := errors.Join(r.status(t.Context(), t), r.lease(t.Context(), t)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func TestAgents_FloodDoesNotSlowOthers(t *testing.T) {
	quiet, flooding := joined(t, 100), joined(t, 30_000)
	before := quiet.reporting(t)
	ctx, stop := context.WithCancel(t.Context())
	var written, refused atomic.Int64
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for ctx.Err() == nil {
				switch err := flooding.status(ctx, t); {
				case err == nil:
					written.Add(1)
				case apierrors.IsTooManyRequests(err):
					refused.Add(1)
				case !apierrors.IsConflict(err) && ctx.Err() == nil:
					t.Errorf("the flood gets %v", err)
					return
				}
			}
		})
	}
	begun := time.Now()
	harness.Eventually(t, "the flood is refused", func(context.Context) (bool, error) {
		if refused.Load() == 0 {
			return false, fmt.Errorf("%d statuses are written", written.Load())
		}
		return true, nil
	})
	// The requests of the flood continue, and are rejected.
	during := quiet.reporting(t)
	stop()
	running.Wait()
	elapsed := time.Since(begun)
	t.Logf("status and lease take %s, and %s while another agent writes %d statuses of 30 kB and is refused %d times in %s",
		before, during, written.Load(), refused.Load(), elapsed)
	if limit := 10*before + 500*time.Millisecond; during > limit {
		t.Errorf("status and lease take %s during a flood, want %s at most: %s without", during, limit, before)
	}
	if limit := int64(agentBurst + agentWrites*(elapsed.Seconds()+1)); written.Load() > limit {
		t.Errorf("the flood has written %d times in %s, want %d at most", written.Load(), elapsed, limit)
	}
}
