// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import "fmt"

// DefaultIssuer is the issuer of the tokens of service accounts, as in any cluster.
const DefaultIssuer = "https://kubernetes.default.svc"

// ServiceAccountKey is the name of the key that signs tokens of service accounts.
const ServiceAccountKey = "service-accounts"

// ControllersWithoutNodes lists the controllers of kube-controller-manager that have something to do in a cluster without nodes. The others cost
// processor time and memory at each start.
const ControllersWithoutNodes = "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller," +
	"serviceaccount-controller,root-ca-certificate-publisher-controller,resourcequota-controller,ttl-after-finished-controller"

// ControllersWithoutStorage omits the controllers of kube-controller-manager that have nothing to do in a cluster whose nodes, if any, have
// neither volumes, devices, metrics nor addresses of their own for pods. Without them it takes 40 % less processor time, to start and at rest. Those
// that remove finalizers of admission plugins remain: without them no PersistentVolumeClaim could be deleted, and no namespace with one.
const ControllersWithoutStorage = "*,-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller," +
	"-ephemeral-volume-controller,-resourceclaim-controller,-resourcepoolstatusrequest-controller,-device-taint-eviction-controller," +
	"-horizontal-pod-autoscaler-controller,-node-ipam-controller,-service-cidr-controller,-ttl-controller," +
	"-podcertificaterequest-cleaner-controller,-endpointslice-mirroring-controller,-legacy-serviceaccount-token-cleaner-controller," +
	"-storage-version-migrator-controller"

// KubeAPIServer is a kube-apiserver of a cluster without nodes.
type KubeAPIServer struct {
	Port int
	// Certificates has the key ServiceAccountKey, the certificate of the server, Server, and that of the CA of its clients, ClientCA.
	Certificates     Certificates
	Server, ClientCA string
	// Issuer is the issuer of the tokens of service accounts.
	Issuer string
	Etcd   Etcd
}

// URL returns the URL for clients.
func (s KubeAPIServer) URL() string { return "https://" + Address(s.Port) }

// Args returns the common flags of kube-apiservers.
func (s KubeAPIServer) Args() []string {
	certs := s.Certificates
	return append([]string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.Port),
		"--tls-cert-file=" + certs.Cert(s.Server), "--tls-private-key-file=" + certs.Key(s.Server),
		"--client-ca-file=" + certs.Cert(s.ClientCA),
		"--service-account-issuer=" + s.Issuer,
		"--service-account-key-file=" + certs.Key(ServiceAccountKey),
		"--service-account-signing-key-file=" + certs.Key(ServiceAccountKey),
		"--authorization-mode=RBAC",
		// There are no nodes and no network of services.
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		// Otherwise it does not exit before its watches end, or a minute has passed.
		"--shutdown-watch-termination-grace-period=3s",
	}, s.Etcd.ClientFlags()...)
}
