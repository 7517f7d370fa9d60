// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
)

// setting is one property of a Deployment as settings spells it, and why the Deployment has it.
type setting struct{ text, why string }

// What the Deployments share.
var (
	anyPod = []setting{
		{"user 65532:65532", "the user that the images are built for; files of volumes belong to it"},
	}
	oneOfTwo = slices.Concat(anyPod, []setting{
		{"replicas 2", "one acts, the other takes over when its node is gone"},
		{"strategy default", "there is a standby while a pod is replaced"},
		{"budget maxUnavailable 1 AlwaysAllow", "a drain of nodes leaves one replica, and is not blocked by pods that are not ready"},
		{"port health 8081", "the probes name the port"},
		{"--health-probe-bind-address=:8081", "the kubelet asks from outside of the pod; the default is loopback"},
		{"liveness HTTP /healthz health", "a process that hangs is restarted"},
		{"readiness HTTP /readyz health", "a rollout waits until the new process works"},
	})
	hubControllers = slices.Concat(oneOfTwo, []setting{
		{"priority system-cluster-critical", "the hub is not evicted for the pods of users"},
		{"--leader-elect-namespace=clusterhub-system", "the Role for the Lease is in this namespace"},
	})
	hubServer = slices.Concat(anyPod, []setting{
		{"account hub-apiserver", "its rights are bound to this account"},
		{"group of files 65532", "it writes to its volume, and reads the Secrets that are mounted"},
		{"priority system-cluster-critical", "the hub is not evicted for the pods of users"},
		{"budget maxUnavailable 1 AlwaysAllow", "a drain of nodes ends one replica at a time, and is not blocked by pods that are not ready"},
		{"grace 90s", "longer than the shutdown delay and a request together, so that the kubelet does not kill what still serves"},
		{"--secure-port=8443", "the Service leads to this port"},
		{"port https 8443", "the Service and the probes name the port"},
		{"--service-namespace=clusterhub-system", "it renews the caBundle of APIServices with a Service in this namespace, and keeps its CA there"},
		{"--shutdown-delay-duration=15s", "it serves until kube-apiserver has left it out of the endpoints; without it requests fail in a rolling update"},
		{"--shutdown-send-retry-after", "requests that come during a shutdown are told to try again, and are not cut off"},
		{"--profiling=false", "/debug/pprof shows memory of the process, which has Secrets and tokens in it"},
		{"startup HTTPS /livez https 90x2s", "not /readyz: a server whose data is damaged must stay there to say so. A large database takes minutes to open"},
		{"liveness HTTPS /livez?exclude=etcd https", "a restart does not help an etcd that is slow for a while, as in a defragmentation"},
		{"readiness HTTPS /readyz https", "the Service leads to servers that are ready only, and to none that shuts down"},
		{"mount /tmp emptyDir", "the root file system is read-only, and hub-apiserver writes temporary files"},
	})
	embeddedEtcd = slices.Concat(hubServer, []setting{
		{"replicas 1", "one process at a time can have the embedded etcd"},
		{"strategy Recreate", "one pod at a time can use the volume: the new one would wait for the old one, which waits for it"},
		{"--data-dir=/var/lib/hub-apiserver", "the embedded etcd is on the volume, and not in a container that goes"},
		{"mount /var/lib/hub-apiserver claim hub-apiserver", "the data outlives the pod"},
		{"--embedded-etcd-quota-backend-bytes=4294967296", "less than half of the volume: a defragmentation writes the database a second time"},
	})
	externalEtcd = slices.Concat(hubServer, []setting{
		{"replicas 3", "the hub serves while a node is gone"},
		{"strategy RollingUpdate surge 1 unavailable 0 after 30s", "a rolling update never has fewer replicas than before, and gives kube-apiserver time to find the new one"},
		{"--etcd-servers=https://etcd.clusterhub-system.svc:2379", "replicas share one etcd; without it each starts its own"},
		{"--etcd-cafile=/etc/hub-apiserver/etcd/ca.crt", "it trusts no other server with the data of the hub"},
		{"--etcd-certfile=/etc/hub-apiserver/etcd/tls.crt", "etcd asks for a certificate of its clients"},
		{"--etcd-keyfile=/etc/hub-apiserver/etcd/tls.key", "etcd asks for a certificate of its clients"},
		{"mount /etc/hub-apiserver/etcd Secret hub-apiserver-etcd read-only", "the flags of etcd name these files"},
	})
	hubManager = slices.Concat(hubControllers, []setting{
		{"account hub-controller-manager", "its rights are bound to this account"},
		{"--controllers=sets,placements,works,edge,access,registration", "all but certificates: what approves them has rights of its own, and so a process of its own"},
		{"--hub-apiserver-service=clusterhub-system/hub-apiserver", "the shared roles of agents are bound only while the APIServices lead to this Service"},
		{"--metrics-bind-address=:8443", "Prometheus asks from outside of the pod"},
		{"--metrics-secure", "metrics are for those who may get them, over HTTPS; without it the address is refused"},
		{"port metrics 8443", "the PodMonitor names the port"},
	})
	hubApprover = slices.Concat(hubControllers, []setting{
		{"account hub-certificate-approver", "no other process has the right to approve certificates of agents"},
		{"--controllers=certificates", "its account has rights for these alone"},
		{"--leader-elect-resource-name=hub-certificate-approver", "with the Lease of hub-controller-manager one of the two would never act"},
	})
	hubProvider = slices.Concat(oneOfTwo, []setting{
		{"account cluster-provider-kubeconfig", "its rights are bound to this account"},
		{"kubeconfig", "which provider it is"}, {"run", "the container that stays"},
		{"--environment=default", "the names of its ClusterProfiles and of its Lease begin with it; its Role names the Lease"},
		{"--provider-name=kubeconfig", "the label of the Secrets that it reads"},
		{"--leader-elect", "two replicas that act would write over each other; the default is none"},
		{"init: kubeconfig", "which provider it is"}, {"init: init", "it publishes the profiles before the first pod runs"},
		{"init: --environment=default", "the same as for the container that stays"},
		{"init: --provider-name=kubeconfig", "the same as for the container that stays"},
	})
	podNamespace = []setting{
		{"env POD_NAMESPACE metadata.namespace", "its Secrets, its Lease and its Events are in the namespace of the pod"},
		{"init: env POD_NAMESPACE metadata.namespace", "the same as for the container that stays"},
	}
	hubOperator = slices.Concat(slices.DeleteFunc(slices.Clone(oneOfTwo), func(s setting) bool { return strings.Contains(s.text, "8081") }), []setting{
		{"account hub-operator", "its rights are bound to this account"},
		{"port health 8083", "the probes name the port"},
		{"--health-probe-bind-address=:8083", "the kubelet asks from outside of the pod; the default is loopback"},
		{"--agent-image=clusterhub/hub-agent:v0.0.0", "agents of Klusterlets have its version"},
		{"--hub-apiserver-image=clusterhub/hub-apiserver:v0.0.0", "hubs of ClusterManagers have its version"},
		{"--hub-controller-manager-image=clusterhub/hub-controller-manager:v0.0.0", "hubs of ClusterManagers have its version"},
		{"--cluster-provider-image=clusterhub/cluster-provider:v0.0.0", "providers of ClusterManagers have its version"},
		{"--leader-elect-namespace=clusterhub-operator", "the Role for the Lease is in this namespace"},
		{"--metrics-bind-address=:8443", "Prometheus asks from outside of the pod"},
		{"--metrics-secure", "metrics are for those who may get them, over HTTPS; without it the address is refused"},
		{"port metrics 8443", "the PodMonitor names the port"},
		{"termination message FallbackToLogsOnError", "a pod that ends says why without its log being looked for"},
	})
	anyAgent = slices.Concat(anyPod, []setting{
		{"group of files 65532", "it reads the Secrets that are mounted, and the token for AWS IAM"},
		{"replicas 1", "two agents at once would be two processes with one identity"},
		{"strategy Recreate", "two agents at once would be two processes with one identity"},
		{"--health-probe-bind-address=:8082", "the kubelet asks from outside of the pod; the default is loopback"},
		{"port health 8082", "the probes name the port"},
		{"liveness HTTP /healthz health", "a process that hangs is restarted"},
		{"readiness HTTP /readyz health", "kubectl hub join --wait and hub-operator wait until the agent has an identity and a lease"},
		{"termination message FallbackToLogsOnError", "a pod that ends says why without its log being looked for"},
	})
	registering = slices.Concat(anyAgent, []setting{{"account klusterlet-registration-sa", "its rights are bound to this account; trust policies of IAM roles name it"}})
	working     = slices.Concat(anyAgent, []setting{
		{"account klusterlet-work-sa", "the rights of works are not those of the registration"},
		{"--registration=false", "the other part registers: two would ask for two identities"},
		{"--works", "this part brings works"},
		{"--hub-kubeconfig-dir=/spoke/hub-kubeconfig", "it has the identity that the other part gets"},
		{"mount /spoke/hub-kubeconfig Secret hub-kubeconfig-secret optional read-only", "the identity comes later than the pod"},
	})
	detached = []setting{
		{"--detached", "its own Secrets and Events are on the cluster that runs the pod"},
		{"--spoke-kubeconfig=/spoke/config/kubeconfig", "it reaches the managed cluster from outside; without it, it would manage the cluster that runs the pod"},
	}
	// elsewhere is what the pods of a hub on a management cluster have besides.
	elsewhere = []setting{
		{"no token", "the pods have no right on the cluster that runs them"},
		{"no service links", "the pods are not told what else is in the namespace"},
		{"group of files 65532", "the kubeconfig is for the user and group of the pod alone"},
		{"--kubeconfig=/hub/config/kubeconfig", "it acts on the hub, and not on the cluster that runs the pod"},
	}
	delegated = []setting{
		{"--authentication-kubeconfig=/hub/config/kubeconfig", "the hub says who asks, and not the cluster that runs the pod"},
		{"--authorization-kubeconfig=/hub/config/kubeconfig", "the hub says who may, and not the cluster that runs the pod"},
	}
)

// mounted is the kubeconfig of the account of a pod that runs elsewhere than on its hub.
func mounted(account string) []setting {
	return []setting{{"mount /hub/config Secret " + account + "-kubeconfig read-only", "the only credential of the pod"}}
}

// refused are flags that must not be there, and why.
var refused = map[string]string{
	"--goaway-chance": "kube-apiserver has one connection to hub-apiserver for all users, and cannot send a write again: see docs/design/server.md",
}
