// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/bootstrap"
)

// The kubeconfigs here are written by other users. So files and programs of this machine that they name are not used, the credentials of the user are
// not sent anywhere because of them, and redirects of a hub are not followed with the credentials of the agent.

// bootstrapConnection returns the state of the connection to the hub by the bootstrap kubeconfig.
func bootstrapConnection(ctx context.Context, secret *corev1.Secret) doctor.Way {
	w := doctor.Way{Seen: true}
	data := secret.Data[registration.KeyKubeconfig]
	w.Found = len(data) > 0
	if !w.Found {
		return w
	}
	config, err := bootstrap.Parse(data)
	if err != nil {
		w.Trouble, w.Text = doctor.Unusable, command.ErrorLine(err)
		return w
	}
	if _, err := tryConnection(ctx, &w, config); err != nil {
		w.Trouble, w.Text = doctor.Unusable, command.ErrorLine(err)
	}
	return w
}

// identityConnection returns the same for the agent's own kubeconfig, whose certificate and key are in the same Secret.
func identityConnection(ctx context.Context, secret *corev1.Secret) (doctor.Way, *rest.Config) {
	w := doctor.Way{Seen: true}
	data := secret.Data[registration.KeyKubeconfig]
	w.Found = len(data) > 0
	if !w.Found {
		return w, nil
	}
	unusable := func(err error) (doctor.Way, *rest.Config) {
		w.Trouble, w.Text = doctor.Unusable, command.ErrorLine(err)
		return w, nil
	}
	if len(data) > bootstrap.MaxSize {
		return unusable(errors.New("is too large"))
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return unusable(errors.New("cannot be read as a kubeconfig"))
	}
	if clientcmdapi.MinifyConfig(config) != nil {
		return unusable(errors.New("has no current context"))
	}
	w.Ends = certificateEnds(secret.Data[registration.KeyTLSCert])
	for _, user := range config.AuthInfos {
		if user.Exec != nil { // an agent that joined by AWS IAM: only its pod has that role
			cluster, err := bootstrap.Cluster(config)
			if err != nil {
				return unusable(err)
			}
			w.Server = cluster.Server
			return w, nil
		}
		if user.ClientCertificate == registration.KeyTLSCert && user.ClientKey == registration.KeyTLSKey {
			user.ClientCertificate, user.ClientKey = "", ""
			user.ClientCertificateData, user.ClientKeyData = secret.Data[registration.KeyTLSCert], secret.Data[registration.KeyTLSKey]
		}
	}
	if err := bootstrap.CheckNoFiles(config); err != nil {
		return unusable(err)
	}
	way, err := tryConnection(ctx, &w, config)
	if err != nil {
		return unusable(err)
	}
	return w, way
}

// tryConnection requests the version of the hub of a kubeconfig.
func tryConnection(ctx context.Context, w *doctor.Way, config *clientcmdapi.Config) (*rest.Config, error) {
	cluster, err := bootstrap.Cluster(config)
	if err != nil {
		return nil, err
	}
	w.Server = command.Printable(cluster.Server)
	if err := command.CheckProxyURL(cluster.ProxyURL); err != nil {
		return nil, fmt.Errorf("has an invalid proxy-url: it %w", err)
	}
	way, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errors.New("has a user or a cluster with fields that do not go together")
	}
	way.Timeout = answers.MaxRead
	client, err := answers.Client(way)
	if err != nil {
		return nil, errors.New("has certificates or keys that cannot be used")
	}
	r := &answers.Reader{Config: way, HTTP: client}
	w.Tried = true
	response, _, err := r.Raw(ctx, "/version")
	var verification *tls.CertificateVerificationError
	var request *url.Error
	switch {
	case errors.As(err, &verification):
		w.Trouble, w.Text = doctor.Distrusted, distrust(verification, way.CAData)
	case errors.As(err, &request):
		w.Trouble, w.Text = doctor.Network, command.ErrorLine(request.Err)
	case err != nil:
		w.Trouble, w.Text = doctor.Network, command.ErrorLine(err)
	case response.StatusCode == http.StatusUnauthorized:
		w.Trouble = doctor.Refused
	case response.StatusCode >= http.StatusInternalServerError:
		w.Trouble, w.Text = doctor.NotAnswered, "it answers "+command.Printable(response.Status)
	}
	return way, nil
}

// distrust describes the certificate that was received and the one that was expected.
func distrust(err *tls.CertificateVerificationError, ca []byte) string {
	text := command.ErrorLine(err.Err)
	if len(err.UnverifiedCertificates) > 0 {
		c := err.UnverifiedCertificates[len(err.UnverifiedCertificates)-1]
		text += fmt.Sprintf(". The hub presents a certificate of %q", command.Printable(c.Issuer.String()))
	}
	if len(ca) > 0 {
		text += ", and the CA of the kubeconfig is " + doctor.Hash(ca)
		if block, _ := pem.Decode(ca); block != nil {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil {
				text += fmt.Sprintf(", %q", command.Printable(c.Subject.String()))
			}
		}
	}
	return text
}

// certificateEnds returns when the certificate expires, or nil if there is no certificate.
func certificateEnds(data []byte) *time.Time {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return &c.NotAfter
}

// getLease gets the agent's lease from the hub with the identity of the agent.
func getLease(ctx context.Context, way *rest.Config, m *doctor.Managed) {
	client, err := answers.Client(way)
	if err != nil {
		return
	}
	objects, err := dynamic.NewForConfigAndClient(way, client)
	if err != nil {
		return
	}
	r := &answers.Reader{Config: way, Dynamic: objects, HTTP: client}
	lease, err := r.Get(ctx, answers.GVR("coordination.k8s.io", "v1", "leases"), m.ClusterName, registration.LeaseName)
	if err != nil {
		return
	}
	list := answers.Typed[coordinationv1.Lease](itemsOf(lease), true)
	if len(list.Items) == 0 || list.Items[0].Spec.RenewTime == nil {
		return
	}
	m.Renewed, m.Lasts = &list.Items[0].Spec.RenewTime.Time, registration.LeaseDuration(0)
	if cluster, err := r.Get(ctx, answers.GVR(clusterv1.GroupName, "v1", "managedclusters"), "", m.ClusterName); err == nil {
		for _, c := range answers.Typed[clusterv1.ManagedCluster](itemsOf(cluster), true).Items {
			m.Lasts = registration.LeaseDuration(c.Spec.LeaseDurationSeconds)
		}
	}
}
