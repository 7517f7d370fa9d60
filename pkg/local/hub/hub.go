// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// deploy applies the API objects of a hub, since there are no nodes for the rest.
func (h *Instance) deploy(ctx context.Context) error {
	components := slices.Clone(h.config.Components)
	if h.config.EKS != nil {
		components = append(components, "aws-auth")
	}
	// Without a cluster network, the Service refers to this machine.
	address := deploy.Address{Host: "localhost", Port: int64(h.ports[procHubAPIServer])}
	objects, _, err := deploy.Hub{Components: components, Address: address}.Split("")
	if err != nil {
		return err
	}
	manifests := &bytes.Buffer{}
	for _, o := range objects {
		data, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		manifests.WriteString("---\n")
		manifests.Write(data)
	}
	return h.apply(ctx, manifests)
}

// apply applies manifests as the hub's admin.
func (h *Instance) apply(ctx context.Context, manifests io.Reader) error {
	cmd := h.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager=localhub", "-f", "-")
	cmd.Stdin = manifests
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the manifests of the hub: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

const kindAPIService = "APIService"

func apiServices() (all []apiregistrationv1.APIService, err error) {
	objects, err := deploy.Hub{}.Objects()
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.GetKind() != kindAPIService {
			continue
		}
		var s apiregistrationv1.APIService
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// startHub starts our servers and waits until the front serves their APIs.
func (h *Instance) startHub(ctx context.Context) error {
	for _, i := range h.members(procHubAPIServer) {
		if err := h.StartHubAPIServer(ctx, i); err != nil {
			return err
		}
	}
	if err := h.startKubeControllerManager(ctx); err != nil {
		return err
	}
	if err := h.RouteFront(ctx, 0); err != nil {
		return err
	}
	if h.config.WithoutHubControllerManager {
		return nil
	}
	return h.StartHubControllerManager(ctx)
}

func (h *Instance) startKubeControllerManager(ctx context.Context) error {
	if h.config.WithoutKubeControllerManager {
		return nil
	}
	kubeconfig, certs := h.kubeconfigFile(procKCM), h.certificates()
	args := []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", h.ports[procKCM]),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false", "--use-service-account-credentials", "--controllers=" + localserver.ControllersWithoutStorage,
		"--service-account-private-key-file=" + certs.Key(localserver.ServiceAccountKey), "--root-ca-file=" + certs.Cert(serverCA),
		"--cluster-signing-cert-file=" + certs.Cert(csrSigner), "--cluster-signing-key-file=" + certs.Key(csrSigner),
		"--cert-dir=" + h.path(procKCM),
	}
	return h.run(ctx, procKCM, procKCM, args, nil, func(ctx context.Context) bool { return dials(ctx, h.ports[procKCM]) })
}

// StartHubAPIServer starts a replica of hub-apiserver and waits until it is ready.
func (h *Instance) StartHubAPIServer(ctx context.Context, replica int) error {
	name := memberName(procHubAPIServer, replica)
	kubeconfig := h.kubeconfigFile(name)
	args := []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", h.ports[name]),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}
	if h.config.ExternalEtcd {
		args = append(args, h.etcd(procHubEtcd).ClientFlags()...)
	} else {
		args = append(args, "--data-dir="+h.path(name))
		if h.config.UnsafeNoFsync {
			args = append(args, "--embedded-etcd-unsafe-no-fsync")
		}
	}
	return h.run(ctx, name, procHubAPIServer, append(args, h.config.HubAPIServerArgs...), nil, func(ctx context.Context) bool {
		if len(h.servingCA()) == 0 {
			return false
		}
		client, err := kubernetes.NewForConfig(h.HubAPIServerConfig(replica))
		if err != nil {
			return false
		}
		_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil
	})
}

// StartHubControllerManager starts hub-controller-manager and hub-certificate-approver, which runs some of its controllers with rights of its own. It
// waits until they are ready.
func (h *Instance) StartHubControllerManager(ctx context.Context) error {
	err := h.startControllers(ctx, procHubController, "--controllers=sets,placements,works,edge,access,registration")
	if err != nil || !h.approves() {
		return err
	}
	return h.startControllers(ctx, procHubApprover, "--controllers=certificates", "--leader-elect-resource-name="+procHubApprover)
}

// approves reports whether hub-certificate-approver has anything to do.
func (h *Instance) approves() bool {
	return !h.config.WithoutHubCertificateApprover && !slices.Contains(h.config.HubControllerManagerArgs, "--registration-drivers=")
}

func (h *Instance) startControllers(ctx context.Context, name string, args ...string) error {
	health, metrics := h.ports[name+healthPort], h.ports[name+metricsPort]
	// A single process needs no Lease, and must not exit when it gets no processor time for as long as a leader's renewal may take.
	args = append(args, "--leader-elect=false", "--kubeconfig="+h.kubeconfigFile(name),
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health),
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics))
	args = append(args, h.config.HubControllerManagerArgs...)
	ready := func(ctx context.Context) bool { return healthy(ctx, health, "/readyz") }
	return h.run(ctx, name, procHubController, args, h.config.HubControllerManagerEnv, ready)
}

// StartHubAgent starts the agent of a Plain cluster, as its Deployment would with a kubelet: with its ServiceAccount, and the rights of that. It does
// not wait until the agent has joined a hub.
func (h *Instance) StartHubAgent(ctx context.Context, args ...string) error {
	return h.StartHubAgentIn(ctx, 0, registration.AgentNamespace, args...)
}

// StartHubAgentIn is StartHubAgent for one of Options.HubAgents, by its number, with a ServiceAccount in another namespace.
func (h *Instance) StartHubAgentIn(ctx context.Context, i int, namespace string, args ...string) error {
	name := memberName(procHubAgent, i)
	kubeconfig, err := h.actAs(name, namespace, registration.AgentServiceAccount)
	if err != nil {
		return err
	}
	health := h.ports[name+healthPort]
	args = append([]string{"--spoke-kubeconfig=" + kubeconfig, "--cluster-server-url=" + h.frontURL(h.runningFronts()[0]),
		"--cluster-ca-file=" + h.certificates().Cert(serverCA), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health)}, args...)
	return h.run(ctx, name, procHubAgent, args, nil, func(ctx context.Context) bool { return healthy(ctx, health, "/healthz") })
}

// healthy checks the health of one of our servers that use plain HTTP.
func healthy(ctx context.Context, port int, path string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// KillHubAPIServer kills a replica with SIGKILL.
func (h *Instance) KillHubAPIServer(replica int) {
	h.kill(memberName(procHubAPIServer, replica))
}

// StopHubAPIServer stops a replica gracefully.
func (h *Instance) StopHubAPIServer(replica int) { h.stop(memberName(procHubAPIServer, replica)) }

// StopHubControllerManager stops hub-controller-manager and hub-certificate-approver gracefully.
func (h *Instance) StopHubControllerManager() {
	for _, name := range []string{procHubApprover, procHubController} {
		h.stop(name)
	}
}

// RouteFront makes the fronts use one replica of hub-apiserver, and waits until all our APIServices are available at each running front. Their
// OpenAPI documents, which kubectl explain needs, follow within two seconds.
func (h *Instance) RouteFront(ctx context.Context, replica int) error {
	if h.record != nil {
		return nil
	}
	client, err := aggregatorclient.NewForConfig(h.AdminConfig())
	if err != nil {
		return err
	}
	ours, err := apiServices()
	if err != nil {
		return err
	}
	patch := func(format string, args ...any) error {
		for _, s := range ours {
			_, err := client.ApiregistrationV1().APIServices().Patch(ctx, s.Name, types.MergePatchType,
				fmt.Appendf(nil, format, args...), metav1.PatchOptions{FieldManager: "localhub"})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := patch(`{"spec":{"service":{"port":%d}}}`, h.ports[memberName(procHubAPIServer, replica)]); err != nil {
		return err
	}
	if err := h.AwaitServed(ctx); err != nil {
		return err
	}
	// The front retries a failed request for an OpenAPI document after a minute, or when the APIService changes.
	return patch(`{"metadata":{"annotations":{"clusterhub.dev/routed":%q}}}`, time.Now().Format(time.RFC3339Nano))
}

// AwaitServed waits until all our APIServices are available at each running front.
func (h *Instance) AwaitServed(ctx context.Context) error {
	ours, err := apiServices()
	if err != nil {
		return err
	}
	var fronts []aggregatorclient.Interface
	for _, i := range h.runningFronts() {
		front, err := aggregatorclient.NewForConfig(h.FrontConfig(i))
		if err != nil {
			return err
		}
		fronts = append(fronts, front)
	}
	last := ""
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		for _, front := range fronts {
			for _, s := range ours {
				if ok, why := served(ctx, front, s); !ok {
					last = why
					return false, nil
				}
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("kube-apiserver does not serve the APIs of hub-apiserver: %s", last)
	}
	// kubectl's cache is from before our groups; kubectl explain does not refresh it for a short name.
	return os.RemoveAll(h.path("kubectl-cache"))
}

// served reports whether the front has found an APIService available and serves requests for it.
func served(ctx context.Context, client aggregatorclient.Interface, want apiregistrationv1.APIService) (bool, string) {
	s, err := client.ApiregistrationV1().APIServices().Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return false, err.Error()
	}
	for _, c := range s.Status.Conditions {
		if c.Type == apiregistrationv1.Available && c.Status != apiregistrationv1.ConditionTrue {
			return false, fmt.Sprintf("APIService %s: %s", s.Name, c.Message)
		}
	}
	groupVersion := schema.GroupVersion{Group: want.Spec.Group, Version: want.Spec.Version}
	_, err = client.Discovery().ServerResourcesForGroupVersion(groupVersion.String())
	if err != nil {
		return false, err.Error()
	}
	// kubectl uses this. The front assembles it later.
	aggregated, ok := client.Discovery().(discovery.AggregatedDiscoveryInterface)
	if !ok {
		return true, ""
	}
	_, resources, failed, err := aggregated.GroupsAndMaybeResources()
	switch {
	case err != nil:
		return false, err.Error()
	case failed[groupVersion] != nil:
		return false, failed[groupVersion].Error()
	case resources[groupVersion] == nil:
		return false, groupVersion.String() + " is not in the discovery of kube-apiserver yet"
	}
	return true, ""
}

// servingCA returns the CA of hub-apiserver's certificate from the front, or nil while it has none.
func (h *Instance) servingCA() []byte {
	client, err := aggregatorclient.NewForConfig(h.AdminConfig())
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := client.ApiregistrationV1().APIServices().Get(ctx, "v1alpha1.view.clusterhub.dev", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return s.Spec.CABundle
}

func dials(ctx context.Context, port int) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
