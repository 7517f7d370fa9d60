// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/observed"
)

// joinRun is a number of clusters that join at the same time.
type joinRun struct {
	how      string
	clusters int
	// took is the time until the last of them has all facts. accepted and ready are the times of each from its creation until it is accepted, and
	// until it has all facts.
	took            time.Duration
	accepted, ready kit.Samples
	// steady is the time until nothing changes any more.
	steady   time.Duration
	lost     []string
	requests audit.Requests
	calls    awsCalls
	cpu      kit.CPUTimes
}

// Ways of joining in the report.
const (
	joinByCertificate = "by certificate, with agents"
	joinByAWS         = "by AWS IAM, the hub's side"
)

// MeasureJoins measures clusters that join at once. An admin accepts each of them as soon as it exists.
func MeasureJoins(ctx context.Context, o kit.Options) (results Joins, err error) {
	err = withRegistration(ctx, o, func(ctx context.Context, r *env) error {
		if err := r.Apply(ctx, bootstrapManifest); err != nil {
			return err
		}
		for _, join := range []func(context.Context) (*joinRun, error){r.joinByCertificate, r.joinByAWS} {
			j, err := join(ctx)
			if j != nil {
				results = append(results, j.result())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return results, err
}

// acceptAll watches the clusters with a prefix of their names, and accepts them.
func (r *env) acceptAll(ctx context.Context, prefix string) (*fleetWatch, error) {
	clients, err := kit.NewClients(r.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return nil, err
	}
	waiting := make(chan string, 2*r.Options.Joining)
	for i := range 4 * len(clients) {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case name := <-waiting:
					path, patch := kit.ClustersPath+"/"+name, []byte(`{"spec":{"hubAcceptsClient":true}}`)
					response, err := clients[i%len(clients)].Open(ctx, http.MethodPatch, path, kit.MergePatch, patch)
					if err == nil {
						_ = response.Body.Close()
					} else if ctx.Err() == nil {
						fmt.Println("    not accepted:", err)
					}
				}
			}
		}()
	}
	return watchFleet(ctx, r.Hub.AdminConfig(), prefix, func(name string) { waiting <- name })
}

func (r *env) joinByCertificate(ctx context.Context) (*joinRun, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.New(nil)))
	defer cancel()
	j := &joinRun{how: joinByCertificate, clusters: r.Options.Joining}
	agents, err := r.newAgents(ctx)
	if err != nil {
		return nil, err
	}
	defer agents.spoke.Close()
	const prefix = "csr-"
	fleet, err := r.acceptAll(ctx, prefix)
	if err != nil {
		return nil, err
	}
	r.Steps.Step("Letting %d clusters join by certificate", j.clusters)
	defer r.CPUProfile(ctx, "join-csr", 20)()
	// The watches of the agents end before the server that they watch.
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	begun, cpu := time.Now(), r.cpuAll()
	for i := range j.clusters {
		running.Go(func() {
			if err := agents.run(ctx, fmt.Sprintf("%s%06d", prefix, i)); err != nil {
				fmt.Println("    an agent has ended:", err)
			}
		})
	}
	err = fleet.Await(ctx, &r.Steps, j.clusters, factAccepted, factJoined, factAvailable)
	j.took, j.cpu = time.Since(begun), r.cpuAll().Since(cpu)
	j.accepted, j.ready = fleet.Since(observed.Exists, factAccepted), fleet.Since(observed.Exists, factAvailable)
	if err != nil {
		return j, err
	}
	r.Steps.Step("Waiting until the hub has judged all clocks, which takes a second renewal of some leases")
	err = fleet.Await(ctx, &r.Steps, j.clusters, factAccepted, factJoined, factAvailable, factClock)
	j.steady, j.lost = time.Since(begun), fleet.TakeLost()
	if err != nil {
		return j, err
	}
	if _, err := r.audit.AwaitSilence(ctx, 3*time.Second); err != nil {
		return j, err
	}
	if n := fleet.Count(factUnreachable); n > 0 {
		return j, fmt.Errorf("%d clusters still have the taint %s", n, factUnreachable)
	}
	j.requests, err = r.audit.Since(begun)
	return j, err
}

func (r *env) joinByAWS(ctx context.Context) (*joinRun, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j := &joinRun{how: joinByAWS, clusters: r.Options.Joining}
	clients, err := kit.NewClients(r.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return nil, err
	}
	const prefix = "aws-"
	all := make([]int, j.clusters)
	bodies := make([][]byte, j.clusters)
	for i := range all {
		all[i] = i
		name := fmt.Sprintf("%s%06d", prefix, i)
		arn, err := r.addEKS(name)
		if err != nil {
			return nil, err
		}
		bodies[i] = kit.MustJSON(map[string]any{"apiVersion": kit.ClusterGroup + "/v1", "kind": "ManagedCluster",
			"metadata": map[string]any{"name": name, "annotations": map[string]string{registration.AnnotationManagedClusterARN: arn}}})
	}
	fleet, err := r.acceptAll(ctx, prefix)
	if err != nil {
		return nil, err
	}
	r.Steps.Step("Letting %d clusters join by AWS IAM", j.clusters)
	defer r.CPUProfile(ctx, "join-aws", 10)()
	r.aws.ResetCalls()
	begun, cpu := time.Now(), r.cpuAll()
	err = r.WriteAll(ctx, clients, kit.Write{Method: http.MethodPost, ContentType: "application/json",
		Path: func(int) string { return kit.Ours.Path }, Body: func(i int) []byte { return bodies[i] }, Rates: &kit.Rates{}}, all)
	if err != nil {
		return nil, err
	}
	err = fleet.Await(ctx, &r.Steps, j.clusters, factAccepted)
	j.took, j.cpu = time.Since(begun), r.cpuAll().Since(cpu)
	j.accepted = fleet.Since(observed.Exists, factAccepted)
	j.ready, j.steady = j.accepted, j.took
	j.lost, j.calls = fleet.TakeLost(), r.callsByRole()
	if err != nil {
		return j, err
	}
	if _, err := r.audit.AwaitSilence(ctx, 3*time.Second); err != nil {
		return j, err
	}
	j.requests, err = r.audit.Since(begun)
	return j, err
}

// agents run hub-agent's own code, many in this process. Only the clusters that they run on are fake.
type agents struct {
	spoke      *spoke
	kubeconfig string
	bootstrap  *clientcmdapi.Config
}

func (r *env) newAgents(ctx context.Context) (*agents, error) {
	admin, err := kubernetes.NewForConfig(r.Hub.AdminConfig())
	if err != nil {
		return nil, err
	}
	token, err := admin.CoreV1().ServiceAccounts("open-cluster-management").CreateToken(ctx,
		"agent-registration-bootstrap", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(r.Config.Dir, "pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	s := newSpoke()
	a := &agents{spoke: s, kubeconfig: filepath.Join(r.Config.Dir, "spoke.kubeconfig")}
	a.bootstrap = kit.Kubeconfig(&clientcmdapi.Cluster{Server: r.Hub.AdminConfig().Host, CertificateAuthorityData: ca},
		&clientcmdapi.AuthInfo{Token: token.Status.Token})
	return a, clientcmd.WriteToFile(*kit.Kubeconfig(&clientcmdapi.Cluster{Server: s.URL}, &clientcmdapi.AuthInfo{}), a.kubeconfig)
}

// run runs the agent of one cluster.
func (a *agents) run(ctx context.Context, name string) error {
	bootstrap := a.bootstrap.DeepCopy()
	cluster := bootstrap.Clusters["cluster"]
	// client-go shares connections among equal configurations, which real agents cannot.
	cluster.CertificateAuthorityData = append([]byte("# "+name+"\n"), cluster.CertificateAuthorityData...)
	data, err := clientcmd.Write(*bootstrap)
	if err != nil {
		return err
	}
	a.spoke.store(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: registration.BootstrapSecret},
		Data: map[string][]byte{registration.KeyKubeconfig: data}})
	o := agent.NewOptions()
	o.Spoke.Kubeconfig, o.Spoke.Namespace = a.kubeconfig, name
	o.ClusterName, o.ServerURL = name, "https://api."+name+".example.com:6443"
	o.HealthAddress, o.Metrics.Address = "0", "0"
	return o.Run(ctx)
}
