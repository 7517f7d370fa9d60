// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var expires = metrics.NewGauge(&metrics.GaugeOpts{Namespace: "hub_agent", Name: "certificate_expiration_seconds",
	Help: "When the client certificate for the hub expires, in seconds since 1970.", StabilityLevel: metrics.ALPHA})

func init() { legacyregistry.MustRegister(expires) }

// renewAt returns when a certificate is renewed: after 80 % of its lifetime, give or take 5 %, so that those of a fleet that was installed at once
// are not renewed at once.
func renewAt(leaf *x509.Certificate, random float64) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration(float64(life) * (0.75 + 0.1*random)))
}

// Maintain implements identity.Identity.
func (c *certificate) Maintain(ctx context.Context, h *hub.Hub) error {
	s := c.agent.Store.Get()
	leaf, err := parseCert(s.Cert, s.Key, s.ClusterName, s.AgentName)
	if err != nil {
		return err
	}
	c.agent.Report(rotated(metav1.ConditionTrue, registration.ReasonCertificateUpdated, "The client certificate is valid "+validity(leaf)))
	expires.Set(float64(leaf.NotAfter.Unix()))
	if !repeat.Sleep(ctx, time.Until(renewAt(leaf, c.agent.Random()))) {
		return ctx.Err()
	}
	ctx, cancel := context.WithDeadlineCause(ctx, leaf.NotAfter, errExpired)
	defer cancel()
	return c.renew(ctx, h, leaf)
}

// validity formats the validity period. The hub parses it for its metrics of expiry times (pkg/controllers/registration/clustermetrics).
func validity(leaf *x509.Certificate) string {
	return fmt.Sprintf("from %s to %s", leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
}

func (c *certificate) renew(ctx context.Context, h *hub.Hub, leaf *x509.Certificate) error {
	klog.FromContext(ctx).Info("Renewing the certificate")
	retry := repeat.Backoff{Shortest: time.Second, Longest: 5 * time.Minute, Random: c.agent.Random}
	said := &repeat.Said{}
	for {
		request := c.agent.Store.Get().NextCSR
		done, err := c.renewStep(ctx, h)
		if done {
			return nil
		}
		if c.agent.Store.Get().NextCSR != request {
			retry.Reset() // the hub responds soon
		}
		said.Result(ctx, "renewing the certificate", err)
		if err != nil && ctx.Err() == nil {
			c.agent.Report(rotated(metav1.ConditionFalse, registration.ReasonCertificateFailed,
				"The client certificate, valid "+validity(leaf)+", could not be renewed: "+err.Error()))
		}
		if !repeat.Sleep(ctx, retry.Next()) {
			return context.Cause(ctx)
		}
	}
}

func (c *certificate) renewStep(ctx context.Context, h *hub.Hub) (bool, error) {
	s := c.agent.Store.Get()
	if len(s.NextKey) == 0 || string(s.NextKey) == string(s.Key) {
		key, err := newKey()
		if err != nil {
			return false, err
		}
		if err := c.setNextKey(ctx, key); err != nil {
			return false, err
		}
	}
	if s := c.agent.Store.Get(); s.NextCSR != "" {
		return c.poll(ctx, h, nil)
	}
	_, _, err := c.request(ctx, h)
	return false, err
}

func rotated(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: registration.ConditionCertificateRotated, Status: status, Reason: reason, Message: message}
}
