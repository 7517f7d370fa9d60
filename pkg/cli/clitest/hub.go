// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// These identify a hub and a managed cluster on AWS.
const (
	HubARN     = "arn:aws:eks:eu-west-1:123456789012:cluster/hub"
	ManagedARN = "arn:aws:eks:eu-west-1:210987654321:cluster/c1"
	Issuer     = "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE"
)

// ManagerPath is the path of the Deployment of hub-controller-manager.
const ManagerPath = "/apis/apps/v1/namespaces/clusterhub-system/deployments/hub-controller-manager"

// RunsWith returns a Deployment of hub-controller-manager with these flags.
func RunsWith(flags ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ManagerNamespace, Name: deploy.Manager}}
	d.Spec.Template.Spec.ServiceAccountName = deploy.Manager
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar", Args: []string{"--registration-drivers=x"}},
		{Name: deploy.Manager, Args: append([]string{"--leader-elect-namespace=a", "--controllers=sets"}, flags...)}}
	return d
}

// These are the token that a hub issues, and paths of its certificate requests.
const (
	BootstrapToken = "the-bootstrap-token"
	CSRsPath       = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	Trial          = CSRsPath + "/kubectl-hub-trial-x"
)

// Expiry is when the tokens of a hub expire.
var Expiry = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// NewPrepared returns a hub that accepts bootstrap tokens and issues certificates.
func NewPrepared(t *testing.T) (*Server, string) {
	t.Helper()
	s := NewServer(t, NewSet("default"))
	s.Answer(TokenRequest, authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Status:   authenticationv1.TokenRequestStatus{Token: BootstrapToken, ExpirationTimestamp: metav1.NewTime(Expiry)}})
	s.Issue(certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("certificate")})
	return s, Kubeconfig(t, map[string]*Server{"hub": s})
}

// Issue sets the status of certificate requests when they are approved.
func (s *Server) Issue(status certificatesv1.CertificateSigningRequestStatus) {
	s.On["PUT "+Trial+"/approval"] = func(http.ResponseWriter, []byte) bool {
		answered := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: NameOf(Trial)}, Status: status}
		s.On["GET "+Trial] = func(w http.ResponseWriter, _ []byte) bool {
			object, err := AsMap(answered)
			if err == nil {
				WriteJSON(w, http.StatusOK, object)
			}
			return err == nil
		}
		return false
	}
}

// These are the path of the AccessRequests of the namespace teams, and what one of them grants.
const (
	AccessRequests = "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/teams/accessrequests"
	// AnnsBlue is the name of ann's request for the cluster blue. It contains a hash of both.
	AnnsBlue     = "blue-f8fd451f26"
	AccessToken  = "the-clusters-token"
	ClusterToken = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "x", "user": "u"}}],
		"users": [{"name": "u", "user": {"token": "` + AccessToken + `"}}],
		"clusters": [{"name": "x", "cluster": {"server": "https://blue.example.com"}}]}`
)

// AccessRequest returns the AccessRequest of ann for the cluster blue.
func (s *Server) AccessRequest() *v1alpha1.AccessRequest {
	s.t.Helper()
	r := &v1alpha1.AccessRequest{}
	s.As(AccessRequests+"/"+AnnsBlue, r)
	return r
}
