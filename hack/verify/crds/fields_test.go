// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// creates tries whether an object may be made, and leaves none.
func creates(t *testing.T, resource, name, spec string) error {
	t.Helper()
	_, err := of(server(t), resource).Create(t.Context(), object(t, resource, name, spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func TestFields_Validation(t *testing.T) {
	const arn = "arn:aws:eks:us-west-2:123456789012:cluster/hub"
	long := func(n int) string { return strings.Repeat("a", n) }
	host := func(host string) string {
		return fmt.Sprintf(`{deployOption: {mode: Detached}, clusterhub: {apiServer: {address: {host: %q}}}}`, host)
	}
	const notHost = "host must be a DNS name"
	etcd := func(servers string) string {
		return `{clusterhub: {etcd: {type: External, external: {servers: [` + servers + `]}}}}`
	}
	for _, c := range []struct{ resource, spec, want string }{
		{klusterlets, ``, ""},
		{klusterlets, `{}`, ""},
		{klusterlets, `{deployOption: {}}`, ""},
		{klusterlets, `{deployOption: {mode: Default}}`, ""},
		{klusterlets, `{deployOption: {mode: Detached}}`, ""},
		{klusterlets, `{deployOption: {mode: Hosted}}`, ""},
		{klusterlets, `{deployOption: {mode: Singleton}}`, ""},
		{klusterlets, `{deployOption: {mode: SingletonHosted}}`, ""},
		{klusterlets, `{deployOption: {mode: detached}}`, "supported values"},
		{klusterlets, `{deployOption: {mode: 1}}`, "must be of type string"},
		{clusterManagers, ``, ""},
		{clusterManagers, `{}`, ""},
		{clusterManagers, `{deployOption: {mode: Detached}}`, ""},
		{clusterManagers, `{deployOption: {mode: Hosted}}`, ""},
		{clusterManagers, `{deployOption: {mode: Singleton}}`, "supported values"},
		{clusterManagers, `{deployOption: {mode: ""}}`, "supported values"},

		{klusterlets, `{namespace: open-cluster-management-x}`, ""},
		{klusterlets, `{namespace: open-cluster-management-` + long(33) + `}`, ""},
		{klusterlets, `{namespace: open-cluster-management-` + long(34) + `}`, "57"},
		{klusterlets, `{namespace: kube-system}`, "spec.namespace"},
		{klusterlets, `{namespace: open-cluster-management-}`, "spec.namespace"},
		{klusterlets, `{namespace: "open-cluster-management-x/y"}`, "spec.namespace"},
		{klusterlets, `{clusterName: ` + long(63) + `}`, ""},
		{klusterlets, `{clusterName: ` + long(64) + `}`, "63"},
		{klusterlets, `{clusterName: a.b}`, "spec.clusterName"},
		{klusterlets, `{clusterName: "../a"}`, "spec.clusterName"},
		{klusterlets, `{externalServerURLs: [{caBundle: ""}]}`, "url"},
		{klusterlets, `{hubApiServerHostAlias: {ip: 10.0.0.1, hostname: hub}}`, ""},
		{klusterlets, `{hubApiServerHostAlias: {ip: 10.0.0.256, hostname: hub}}`, "hubApiServerHostAlias.ip"},
		{klusterlets, `{hubApiServerHostAlias: {ip: 10.0.0.1, hostname: "a b"}}`, "hubApiServerHostAlias.hostname"},
		{klusterlets, `{hubApiServerHostAlias: {ip: 10.0.0.1}}`, "hostname"},
		{klusterlets, `{registrationConfiguration: {registrationDriver: {authType: token}}}`, "supported values"},
		{klusterlets, `{registrationConfiguration: {registrationDriver: {authType: awsirsa, awsIrsa: {hubClusterArn: "` + arn + `", managedClusterArn: "` + arn + `"}}}}`, ""},
		{klusterlets, `{registrationConfiguration: {registrationDriver: {awsIrsa: {hubClusterArn: "arn:aws:s3:::x", managedClusterArn: "` + arn + `"}}}}`, "hubClusterArn"},
		{klusterlets, `{registrationConfiguration: {bootstrapKubeConfigs: {type: LocalSecrets, localSecretsConfig: {kubeConfigSecrets: [{name: a}, {name: b}], hubConnectionTimeoutSeconds: 179}}}}`, "180"},
		{klusterlets, `{registrationConfiguration: {clusterClaimConfiguration: {reservedClusterClaimSuffixes: [""]}}}`, "reservedClusterClaimSuffixes"},
		{klusterlets, `{registrationConfiguration: {clusterClaimConfiguration: {maxCustomClusterClaims: -1}}}`, "maxCustomClusterClaims"},
		{klusterlets, `{registrationConfiguration: {clientCertExpirationSeconds: 0, kubeAPIQPS: 0, kubeAPIBurst: 0}}`, ""},
		{klusterlets, `{registrationConfiguration: {clientCertExpirationSeconds: 600}}`, ""},
		{klusterlets, `{registrationConfiguration: {clientCertExpirationSeconds: 599}}`, "clientCertExpirationSeconds"},
		{klusterlets, `{registrationConfiguration: {clientCertExpirationSeconds: -1}}`, "clientCertExpirationSeconds"},
		{klusterlets, `{registrationConfiguration: {kubeAPIQPS: -1}}`, "kubeAPIQPS"},
		{klusterlets, `{workConfiguration: {kubeAPIBurst: -1}}`, "kubeAPIBurst"},
		{klusterlets, `{workConfiguration: {hubKubeAPIQPS: -1}}`, "hubKubeAPIQPS"},
		{klusterlets, `{registrationConfiguration: {featureGates: [{feature: A, mode: Maybe}]}}`, "supported values"},
		{klusterlets, `{workConfiguration: {statusSyncInterval: 1m30s, appliedManifestWorkEvictionGracePeriod: 100h}}`, ""},
		{klusterlets, `{workConfiguration: {statusSyncInterval: soon}}`, "statusSyncInterval"},
		{klusterlets, `{resourceRequirement: {type: Most}}`, "supported values"},
		{klusterlets, `{resourceRequirement: {type: ResourceRequirement, resourceRequirements: {limits: {memory: 1Gi}}}}`, ""},

		{klusterlets, `{clusterhub: {works: {role: cluster-admin, namespaces: [a, b]}}}`, ""},
		{klusterlets, `{clusterhub: {works: {role: ""}}}`, "role"},
		{klusterlets, `{clusterhub: {works: {role: "a/b"}}}`, "role"},
		{klusterlets, `{clusterhub: {works: {namespaces: [a, a]}}}`, "Duplicate value"},
		{klusterlets, `{clusterhub: {works: {namespaces: [A]}}}`, "namespaces"},
		{klusterlets, `{clusterhub: {imagePullSecrets: [a, b.c]}}`, ""},
		{klusterlets, `{clusterhub: {imagePullSecrets: [a, a]}}`, "Duplicate value"},
		{klusterlets, `{clusterhub: {imagePullSecrets: [A]}}`, "imagePullSecrets"},

		{clusterManagers, host("hub-apiserver.hub.svc"), ""},
		{clusterManagers, host("a"), ""},
		{clusterManagers, host("10.1.2.3"), ""},
		{clusterManagers, host("2001:db8::1"), ""},
		{clusterManagers, host("1.example.com"), ""},
		{clusterManagers, host(""), "at least 1"},
		{clusterManagers, host(long(254)), "253"},
		{clusterManagers, host("127.0.0.1"), notHost},
		{clusterManagers, host("::1"), notHost},
		{clusterManagers, host("0.0.0.0"), notHost},
		{clusterManagers, host("169.254.169.254"), notHost},
		{clusterManagers, host("224.0.0.1"), notHost},
		{clusterManagers, host("fe80::1"), notHost},
		{clusterManagers, host("fe80::1%eth0"), notHost},
		{clusterManagers, host("::ffff:127.0.0.1"), notHost},
		{clusterManagers, host("2130706433"), notHost},
		{clusterManagers, host("0x7f000001"), notHost},
		{clusterManagers, host("127.1"), notHost},
		{clusterManagers, host("localhost"), notHost},
		{clusterManagers, host("a.localhost"), notHost},
		{clusterManagers, host("localhost."), notHost},
		{clusterManagers, host("https://hub"), notHost},
		{clusterManagers, host("hub:443"), notHost},
		{clusterManagers, host("hub/x"), notHost},
		{clusterManagers, host("user@hub"), notHost},
		{clusterManagers, host("a..b"), notHost},
		{clusterManagers, host("Hub"), notHost},
		{clusterManagers, host("a\nb"), notHost},
		{clusterManagers, `{deployOption: {mode: Hosted}, clusterhub: {apiServer: {address: {host: a, port: 30443}}}}`, ""},
		{clusterManagers, `{deployOption: {mode: Detached}, clusterhub: {apiServer: {address: {host: a, port: 0}}}}`, "port"},
		{clusterManagers, `{deployOption: {mode: Detached}, clusterhub: {apiServer: {address: {host: a, port: 65536}}}}`, "port"},
		{clusterManagers, `{deployOption: {mode: Detached}, clusterhub: {apiServer: {address: {port: 1}}}}`, "host"},
		{clusterManagers, `{clusterhub: {apiServer: {address: {host: a}}}}`, "the address is for the modes Detached and Hosted"},

		{clusterManagers, etcd(`"https://etcd:2379", "https://10.0.0.1:2379", "https://[::1]:2379"`), ""},
		{clusterManagers, etcd(`"https://etcd"`), ""},
		{clusterManagers, etcd(``), "external.servers"},
		{clusterManagers, etcd(`"http://etcd:2379"`), "external.servers[0]"},
		{clusterManagers, etcd(`"https://a,--profiling=true"`), "external.servers[0]"},
		{clusterManagers, etcd(`"https://user:password@etcd"`), "external.servers[0]"},
		{clusterManagers, etcd(`"https://etcd/path"`), "external.servers[0]"},
		{clusterManagers, etcd(`"unix:///etcd"`), "external.servers[0]"},
		{clusterManagers, `{clusterhub: {etcd: {type: External}}}`, "the type External needs external"},
		{clusterManagers, `{clusterhub: {etcd: {external: {servers: ["https://e"]}}}}`, "the type Embedded has no external"},
		{clusterManagers, `{clusterhub: {etcd: {type: External, external: {servers: ["https://e"]}, embedded: {size: 2Gi}}}}`, "has no embedded"},
		{clusterManagers, `{clusterhub: {etcd: {type: Other}}}`, "supported values"},
		{clusterManagers, `{clusterhub: {etcd: {type: External, external: {servers: ["https://e"], secretName: "a/b"}}}}`, "secretName"},
		{clusterManagers, `{clusterhub: {etcd: {embedded: {size: 1Gi, storageClassName: fast}}}}`, ""},
		{clusterManagers, `{clusterhub: {etcd: {embedded: {size: "2000000000"}}}}`, ""},
		{clusterManagers, `{clusterhub: {etcd: {embedded: {size: 1023Mi}}}}`, "at least 1Gi"},
		{clusterManagers, `{clusterhub: {etcd: {embedded: {size: -2Gi}}}}`, "size"},
		{clusterManagers, `{clusterhub: {etcd: {embedded: {size: much}}}}`, "size"},
		{clusterManagers, `{clusterhub: {etcd: {embedded: {storageClassName: "a b"}}}}`, "storageClassName"},

		{clusterManagers, `{clusterhub: {apiServer: {replicas: 1}, controllerManager: {replicas: 16}}}`, ""},
		{clusterManagers, `{clusterhub: {apiServer: {replicas: 3}}}`, "with the embedded etcd there is one replica"},
		{clusterManagers, `{clusterhub: {apiServer: {replicas: 3}, etcd: {type: External, external: {servers: ["https://e"]}}}}`, ""},
		{clusterManagers, `{clusterhub: {apiServer: {replicas: 0}}}`, "replicas"},
		{clusterManagers, `{clusterhub: {controllerManager: {replicas: 17}}}`, "replicas"},
		{clusterManagers, `{clusterhub: {components: [upstream-agents, cluster-provider]}}`, ""},
		{clusterManagers, `{clusterhub: {components: [leftovers, leftovers]}}`, "Duplicate value"},
		{clusterManagers, `{clusterhub: {components: [../agent]}}`, "supported values"},
		{clusterManagers, `{registrationConfiguration: {registrationDrivers: [{authType: csr}, {authType: awsirsa, awsirsa: {hubClusterArn: "` + arn + `"}}]}}`, ""},
		{clusterManagers, `{registrationConfiguration: {registrationDrivers: [{authType: csr}, {}]}}`, "Duplicate value"},
		{clusterManagers, `{deployOption: {mode: Hosted, hosted: {registrationWebhookConfiguration: {address: "a b"}}}}`, "address"},
		{clusterManagers, `{deployOption: {mode: Hosted, hosted: {registrationWebhookConfiguration: {address: a, port: 70000}}}}`, "port"},
		{clusterManagers, `{workConfiguration: {workDriver: smoke}}`, "supported values"},
	} {
		t.Run(c.resource+" "+c.spec, func(t *testing.T) { refused(t, creates(t, c.resource, "x", c.spec), c.want) })
	}
}

// TestNames_FitNamespaces: what a name becomes a part of has to be possible, and must not be another's.
func TestNames_FitNamespaces(t *testing.T) {
	const long, dot, others = "metadata.name is too long", "metadata.name must have no dot", "belongs to others"
	for _, c := range []struct{ resource, mode, name, want string }{
		{klusterlets, "Default", strings.Repeat("a", operatorv1.MaxKlusterletName), ""},
		{klusterlets, "Default", strings.Repeat("a", operatorv1.MaxKlusterletName+1), long},
		{klusterlets, "Singleton", strings.Repeat("a", operatorv1.MaxKlusterletName+1), long},
		{klusterlets, "Default", "a.b", dot},
		{klusterlets, "Singleton", "a.b", dot},
		{klusterlets, "Detached", strings.Repeat("a", 33), ""},
		{klusterlets, "Detached", strings.Repeat("a", 34), long},
		{klusterlets, "Detached", "a.b", dot},
		{klusterlets, "Detached", "kube-system", ""},
		{klusterlets, "Hosted", strings.Repeat("a", operatorv1.MaxKlusterletName), ""},
		{klusterlets, "Hosted", strings.Repeat("a", operatorv1.MaxKlusterletName+1), long},
		{klusterlets, "SingletonHosted", strings.Repeat("a", operatorv1.MaxKlusterletName+1), long},
		{klusterlets, "Hosted", "a.b", dot},
		{klusterlets, "SingletonHosted", "a.b", dot},
		{klusterlets, "Hosted", "kube-system", others},
		{klusterlets, "SingletonHosted", "kube-public", others},
		{klusterlets, "Hosted", "default", others},
		{klusterlets, "Hosted", "clusterhub-system", others},
		{klusterlets, "Hosted", "open-cluster-management", others},
		{klusterlets, "Hosted", "open-cluster-management-agent", others},
		{klusterlets, "Hosted", "k-open-cluster-management-agent", others},
		{klusterlets, "Hosted", "c-open-cluster-management-hub", others},
		{klusterlets, "Hosted", "defaults", ""},
		{klusterlets, "Default", "kube-system", ""},
		{clusterManagers, "Default", strings.Repeat("a", 63), ""},
		{clusterManagers, "Default", strings.Repeat("a", 64), long},
		{clusterManagers, "Detached", strings.Repeat("a", 35), ""},
		{clusterManagers, "Detached", strings.Repeat("a", 36), long},
		{clusterManagers, "Detached", "a.b", dot},
		{clusterManagers, "Hosted", "a.b", dot},
		{clusterManagers, "Hosted", "kube-system", others},
		{clusterManagers, "Hosted", "open-cluster-management-hub", others},
		{clusterManagers, "Hosted", "k-open-cluster-management-agent", others},
		{clusterManagers, "Hosted", "cluster-manager", ""},
	} {
		t.Run(c.resource+" "+c.mode+" "+c.name, func(t *testing.T) {
			refused(t, creates(t, c.resource, c.name, `{deployOption: {mode: `+c.mode+`}}`), c.want)
		})
	}
}
