// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// certificate is a client certificate that the hub signs.
//
// The private key in use is under tls.key, and the key of a pending certificate request under next.key. A request with the bootstrap kubeconfig is
// for the key in use, if it exists, because the hub knows that key; only a renewal is for a new key.
type certificate struct {
	agent identity.Agent
	// expirationSeconds is the requested lifetime, in seconds; with 0 the signer decides.
	expirationSeconds int32
}

var _ identity.Identity = &certificate{}

var errExpired = errors.New("the certificate has expired")

// Prepare implements identity.Identity.
func (c *certificate) Prepare(ctx context.Context) error {
	s := c.agent.Store.Get()
	want := s.Key
	if len(want) == 0 {
		want = s.NextKey
	}
	if len(want) == 0 {
		made, err := newKey()
		if err != nil {
			return err
		}
		want = made
	}
	return c.setNextKey(ctx, want)
}

// setNextKey writes the key for the next certificate request. It discards a request for a different key.
func (c *certificate) setNextKey(ctx context.Context, key []byte) error {
	if s := c.agent.Store.Get(); string(s.NextKey) == string(key) {
		return nil
	}
	known := c.agent.Store.Get().NextKey
	_, err := c.agent.Store.Update(ctx, func(s *state.State) {
		if len(s.NextKey) > 0 && string(s.NextKey) != string(known) {
			return // another process was faster: its key is used
		}
		s.NextKey, s.NextCSR = key, ""
	})
	return err
}

// Annotations implements identity.Identity.
func (c *certificate) Annotations(s state.State) (map[string]string, error) {
	key := s.Key
	if len(key) == 0 {
		key = s.NextKey
	}
	hash, err := keyHash(key)
	if err != nil {
		return nil, err
	}
	return map[string]string{registration.AnnotationAgentKey: hash}, nil
}

// Requested implements identity.Identity.
func (c *certificate) Requested(s state.State) bool { return s.NextCSR != "" }

// Step implements identity.Identity.
func (c *certificate) Step(ctx context.Context, by identity.Bootstrap) (bool, error) {
	s := c.agent.Store.Get()
	kubeconfig, err := hub.Kubeconfig(by.Kubeconfig, s.ClusterName, c.User())
	if err != nil {
		return false, err
	}
	if s.NextCSR != "" {
		return c.poll(ctx, by.Hub, kubeconfig)
	}
	name, hash, err := c.request(ctx, by.Hub)
	if err == nil && by.NewKey {
		c.agent.Tell(ctx, corev1.EventTypeWarning, "NewKey", fmt.Sprintf("Cluster %s already exists on the hub, which does not know the key of this "+
			"agent: unless the cluster was accepted for the requester, an admin must approve certificate request %s, for the key with "+
			"SHA-256 %s", s.ClusterName, name, hash))
	}
	return false, err
}

// poll checks the state of the request. It writes the certificate to the state, and the kubeconfig if it is not empty.
func (c *certificate) poll(ctx context.Context, h *hub.Hub, kubeconfig []byte) (bool, error) {
	s := c.agent.Store.Get()
	csr, err := h.Kube.CertificatesV1().CertificateSigningRequests().Get(ctx, s.NextCSR, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The hub deletes requests that were pending for a day, or denied for an hour.
		return false, c.forget(ctx, s, "is no longer on the hub")
	}
	if err != nil {
		return false, fmt.Errorf("reading certificate request %s: %w", s.NextCSR, err)
	}
	if !requestsKey(csr.Spec.Request, s.NextKey) {
		return false, c.forget(ctx, s, "is for another key")
	}
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return false, fmt.Errorf("certificate request %s is %s: %s (the agent creates another one after the hub has deleted it)",
				csr.Name, condition.Type, condition.Message)
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return false, nil
	}
	leaf, err := parseCert(csr.Status.Certificate, s.NextKey, s.ClusterName, s.AgentName)
	if err != nil {
		return false, errors.Join(c.forget(ctx, s, "has an invalid certificate"), err)
	}
	if !time.Now().Before(leaf.NotAfter) {
		return false, c.forget(ctx, s, "has a certificate that has expired")
	}
	if _, err := c.agent.Store.Update(ctx, func(to *state.State) {
		to.ClusterName, to.AgentName = s.ClusterName, s.AgentName
		to.Cert, to.Key, to.NextKey, to.NextCSR = csr.Status.Certificate, s.NextKey, nil, ""
		if len(kubeconfig) > 0 {
			to.Kubeconfig = kubeconfig
		}
	}); err != nil {
		return false, err
	}
	klog.FromContext(ctx).Info("Got a certificate", "request", csr.Name, "until", leaf.NotAfter)
	return true, nil
}

// request creates a certificate request for the next key, and returns the request's name and the hash of the key.
func (c *certificate) request(ctx context.Context, h *hub.Hub) (name, hash string, err error) {
	s := c.agent.Store.Get()
	request, err := newRequest(s.NextKey, s.ClusterName, s.AgentName)
	if err != nil {
		return "", "", err
	}
	csr := agentcsr.New(s.ClusterName, request)
	if c.expirationSeconds > 0 {
		csr.Spec.ExpirationSeconds = &c.expirationSeconds
	}
	made, err := h.Kube.CertificatesV1().CertificateSigningRequests().Create(ctx, csr, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("requesting a certificate: %w", err)
	}
	if _, err := c.agent.Store.Update(ctx, func(to *state.State) {
		if string(to.NextKey) == string(s.NextKey) {
			to.NextCSR = made.Name
		}
	}); err != nil {
		return "", "", err
	}
	hash, err = keyHash(s.NextKey)
	if err != nil {
		return "", "", err
	}
	klog.FromContext(ctx).Info("Requested a certificate", "request", made.Name, "keySHA256", hash)
	return made.Name, hash, nil
}

// forget makes the next step create a new request.
func (c *certificate) forget(ctx context.Context, s state.State, why string) error {
	klog.FromContext(ctx).Info("Requesting a certificate again", "request", s.NextCSR, "because it", why)
	_, err := c.agent.Store.Update(ctx, func(to *state.State) {
		if to.NextCSR == s.NextCSR {
			to.NextCSR = ""
		}
	})
	return err
}

// Usable implements identity.Identity.
func (c *certificate) Usable(s state.State) error {
	if len(s.Kubeconfig) == 0 {
		return errors.New("there is no kubeconfig for the hub")
	}
	leaf, err := parseCert(s.Cert, s.Key, s.ClusterName, s.AgentName)
	if err != nil {
		return err
	}
	if !time.Now().Before(leaf.NotAfter) {
		return errExpired
	}
	return nil
}

// User implements identity.Identity. It names the files of the mounted secret, so that client-go notices a renewed certificate.
func (c *certificate) User() *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificate: registration.KeyTLSCert, ClientKey: registration.KeyTLSKey}
}

// Config implements identity.Identity.
func (c *certificate) Config(s state.State, kubeconfig []byte) (*rest.Config, error) {
	return hub.IdentityConfig(kubeconfig, func(user *clientcmdapi.AuthInfo) {
		*user = clientcmdapi.AuthInfo{ClientCertificateData: s.Cert, ClientKeyData: s.Key}
	})
}
