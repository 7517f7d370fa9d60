// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/x509"
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

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// csrIdentity is a client certificate that the hub signs.
//
// Of the three private keys that there can be, the one in use is under tls.key, and the one that a certificate is being
// asked for under next.key. The bootstrap kubeconfig asks for the key in use, if there is one, because that is the one
// that the hub knows; only a renewal is for a new key.
type csrIdentity struct {
	store *store
	// expirationSeconds is the life that is asked for; 0 leaves it to the signer.
	expirationSeconds int32
	random            func() float64
	// report puts a condition into the status of the cluster.
	report func(metav1.Condition)
	// tell says something that an admin should know.
	tell func(ctx context.Context, eventType, reason, message string)
	// unknownKey says that the hub may know another key as this agent's. It is for the first key only.
	unknownKey func() bool
}

var _ identity = &csrIdentity{}

var errExpired = errors.New("the certificate has expired")

func (c *csrIdentity) prepare(ctx context.Context) error {
	s := c.store.get()
	want := s.key
	if len(want) == 0 {
		want = s.nextKey
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

// setNextKey writes the key for which a certificate will be asked. A request for another key is forgotten.
func (c *csrIdentity) setNextKey(ctx context.Context, key []byte) error {
	if s := c.store.get(); string(s.nextKey) == string(key) {
		return nil
	}
	known := c.store.get().nextKey
	_, err := c.store.update(ctx, func(s *state) {
		if len(s.nextKey) > 0 && string(s.nextKey) != string(known) {
			return // another process was faster: its key counts
		}
		s.nextKey, s.nextCSR = key, ""
	})
	return err
}

func (c *csrIdentity) annotations(s state) (map[string]string, error) {
	key := s.key
	if len(key) == 0 {
		key = s.nextKey
	}
	hash, err := keyHash(key)
	if err != nil {
		return nil, err
	}
	return map[string]string{registration.AnnotationAgentKey: hash}, nil
}

func (c *csrIdentity) asked(s state) bool { return s.nextCSR != "" }

func (c *csrIdentity) step(ctx context.Context, bootstrap *clientcmdapi.Config, h *hub) (bool, error) {
	s := c.store.get()
	kubeconfig, err := hubKubeconfig(bootstrap, s.clusterName, c.user())
	if err != nil {
		return false, err
	}
	return c.advance(ctx, h, kubeconfig)
}

// advance makes the request, or looks at what has become of it.
func (c *csrIdentity) advance(ctx context.Context, h *hub, kubeconfig []byte) (bool, error) {
	s := c.store.get()
	if s.nextCSR == "" {
		return false, c.request(ctx, h, s)
	}
	csr, err := h.kube.CertificatesV1().CertificateSigningRequests().Get(ctx, s.nextCSR, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The hub removes requests that were pending for a day, or denied for an hour.
		return false, c.forget(ctx, s, "is no longer on the hub")
	}
	if err != nil {
		return false, fmt.Errorf("reading certificate request %s: %w", s.nextCSR, err)
	}
	if !requestsKey(csr.Spec.Request, s.nextKey) {
		return false, c.forget(ctx, s, "is for another key")
	}
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return false, fmt.Errorf("certificate request %s is %s: %s (it is made again once the hub has removed it)",
				csr.Name, condition.Type, condition.Message)
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return false, nil
	}
	leaf, err := parseCert(csr.Status.Certificate, s.nextKey, s.clusterName, s.agentName)
	if err != nil {
		return false, errors.Join(c.forget(ctx, s, "has been answered wrongly"), err)
	}
	if !time.Now().Before(leaf.NotAfter) {
		return false, c.forget(ctx, s, "has a certificate that has expired")
	}
	if _, err := c.store.update(ctx, func(to *state) {
		to.clusterName, to.agentName = s.clusterName, s.agentName
		to.cert, to.key, to.nextKey, to.nextCSR = csr.Status.Certificate, s.nextKey, nil, ""
		if len(kubeconfig) > 0 {
			to.kubeconfig = kubeconfig
		}
	}); err != nil {
		return false, err
	}
	klog.FromContext(ctx).Info("Got a certificate", "request", csr.Name, "until", leaf.NotAfter)
	return true, nil
}

func (c *csrIdentity) request(ctx context.Context, h *hub, s state) error {
	request, err := newRequest(s.nextKey, s.clusterName, s.agentName)
	if err != nil {
		return err
	}
	csr := agentcsr.New(s.clusterName, request)
	if c.expirationSeconds > 0 {
		csr.Spec.ExpirationSeconds = &c.expirationSeconds
	}
	made, err := h.kube.CertificatesV1().CertificateSigningRequests().Create(ctx, csr, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a certificate: %w", err)
	}
	if _, err := c.store.update(ctx, func(to *state) {
		if string(to.nextKey) == string(s.nextKey) {
			to.nextCSR = made.Name
		}
	}); err != nil {
		return err
	}
	hash, err := keyHash(s.nextKey)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Asked for a certificate", "request", made.Name, "keySHA256", hash)
	if c.unknownKey() {
		c.tell(ctx, corev1.EventTypeWarning, "NewKey", fmt.Sprintf("The hub knows cluster %s already, and the key of this "+
			"agent is new to it: unless it was accepted for the user who asks, an admin has to approve certificate request %s, for the key with "+
			"SHA-256 %s", s.clusterName, made.Name, hash))
	}
	return nil
}

// forget lets the next step make a new request.
func (c *csrIdentity) forget(ctx context.Context, s state, why string) error {
	klog.FromContext(ctx).Info("Asking for a certificate again", "request", s.nextCSR, "because it", why)
	_, err := c.store.update(ctx, func(to *state) {
		if to.nextCSR == s.nextCSR {
			to.nextCSR = ""
		}
	})
	return err
}

func (c *csrIdentity) usable(s state) error {
	if len(s.kubeconfig) == 0 {
		return errors.New("there is no kubeconfig for the hub")
	}
	leaf, err := parseCert(s.cert, s.key, s.clusterName, s.agentName)
	if err != nil {
		return err
	}
	if !time.Now().Before(leaf.NotAfter) {
		return errExpired
	}
	return nil
}

// renewAt is when a certificate is renewed: after 80 % of its life, give or take 5 %, so that those of a fleet that was
// installed in one go are not renewed in one go.
func renewAt(leaf *x509.Certificate, random float64) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration(float64(life) * (0.75 + 0.1*random)))
}

func (c *csrIdentity) keep(ctx context.Context, h *hub) error {
	s := c.store.get()
	leaf, err := parseCert(s.cert, s.key, s.clusterName, s.agentName)
	if err != nil {
		return err
	}
	c.report(rotated(metav1.ConditionTrue, registration.ReasonCertificateUpdated, fmt.Sprintf(
		"The client certificate is valid from %s to %s",
		leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))))
	certificateExpires.Set(float64(leaf.NotAfter.Unix()))
	if !sleep(ctx, time.Until(renewAt(leaf, c.random()))) {
		return ctx.Err()
	}
	ctx, cancel := context.WithDeadlineCause(ctx, leaf.NotAfter, errExpired)
	defer cancel()
	return c.renew(ctx, h)
}

func (c *csrIdentity) renew(ctx context.Context, h *hub) error {
	klog.FromContext(ctx).Info("Renewing the certificate")
	retry := backoff{shortest: time.Second, longest: 5 * time.Minute, random: c.random}
	said := &said{}
	for {
		request := c.store.get().nextCSR
		done, err := c.renewStep(ctx, h)
		if done {
			return nil
		}
		if c.store.get().nextCSR != request {
			retry.reset() // the hub answers soon
		}
		said.result(ctx, "renewing the certificate", err)
		if err != nil && ctx.Err() == nil {
			c.report(rotated(metav1.ConditionFalse, registration.ReasonCertificateFailed,
				"The client certificate could not be renewed: "+err.Error()))
		}
		if !sleep(ctx, retry.next()) {
			return context.Cause(ctx)
		}
	}
}

func (c *csrIdentity) renewStep(ctx context.Context, h *hub) (bool, error) {
	s := c.store.get()
	if len(s.nextKey) == 0 || string(s.nextKey) == string(s.key) {
		key, err := newKey()
		if err != nil {
			return false, err
		}
		if err := c.setNextKey(ctx, key); err != nil {
			return false, err
		}
	}
	return c.advance(ctx, h, nil)
}

func rotated(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: registration.ConditionCertificateRotated, Status: status, Reason: reason, Message: message}
}

// user names the files that the secret is where it is mounted, so that client-go notices a renewed certificate.
func (c *csrIdentity) user() *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificate: registration.KeyTLSCert, ClientKey: registration.KeyTLSKey}
}

func (c *csrIdentity) config(s state, kubeconfig []byte) (*rest.Config, error) {
	return hubRESTConfig(kubeconfig, func(user *clientcmdapi.AuthInfo) {
		user.ClientCertificate, user.ClientKey = "", ""
		user.ClientCertificateData, user.ClientKeyData = s.cert, s.key
	})
}
