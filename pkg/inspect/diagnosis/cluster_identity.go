// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Findings about the identity of a cluster's agent.
const (
	// RequestMissing: the agent has not requested a certificate.
	RequestMissing ID = "RequestMissing"
	// RequestWaits: a user must decide on its certificate request.
	RequestWaits ID = "RequestWaits"
	// RequestRefused: its certificate request was denied, or could not be signed.
	RequestRefused ID = "RequestRefused"
	// RequestNotSigned: its certificate request is approved, and there is no certificate.
	RequestNotSigned ID = "RequestNotSigned"
	// CertificateExpired: the agent's certificate has expired.
	CertificateExpired ID = "CertificateExpired"
)

// CertificateRequest is a certificate request of a cluster's agent.
type CertificateRequest struct {
	Name, Requester string
	Made            metav1.Time
	// NotAnAgents is the reason why it is not for an agent of the cluster, in spite of its label.
	NotAnAgents string
	// Refused reports whether it was denied or has failed, and Why is the message.
	Refused  bool
	Why      string
	Approved bool
	// Expires is when the issued certificate expires. It is zero if there is no certificate.
	Expires time.Time
}

func (r *CertificateRequest) object() string { return "certificatesigningrequest/" + r.Name }

// mine returns the requests that are for the agent.
func (c *clusterChain) mine() (all []CertificateRequest) {
	requests, _ := c.Requests.Get()
	for _, r := range requests {
		if r.NotAnAgents == "" {
			all = append(all, r)
		}
	}
	return all
}

// byAWS returns the ARN of a cluster that authenticates by AWS, or "".
func (c *clusterChain) byAWS() string {
	if arn := c.cluster.Annotations[registration.AnnotationManagedClusterARN]; arn != "" {
		return arn
	}
	return c.cluster.Annotations[registration.AnnotationManagedClusterARNOfSeed]
}

// identity checks how the agent got, or will get, its identity.
func (c *clusterChain) identity() outcome {
	if arn := c.byAWS(); arn != "" {
		return passed("by AWS IAM, as %s", arn)
	}
	if status, _ := c.condition(registration.ConditionJoined); status == metav1.ConditionTrue {
		return passed("by certificate")
	}
	if o, found := c.waits(); found {
		return o
	}
	if why := c.Requests.Why(); why != "" {
		return unseen(why)
	}
	mine := c.mine()
	if len(mine) == 0 {
		return broken("not requested", Finding{ID: RequestMissing, Severity: Error, Object: c.object(), Turn: c.agent(), Since: c.acceptedAt(),
			Cause: "The agent has not requested a certificate. The hub deletes a request an hour after its approval or denial, so the agent may have requested one before.",
			Fix:   []string{c.onCluster()}})
	}
	last := &mine[len(mine)-1]
	switch {
	case last.Refused:
		return c.refused(last)
	case !last.Expires.IsZero() && last.Expires.Before(c.Now):
		return c.expired(last)
	case !last.Expires.IsZero():
		return passed("by certificate, until %s", last.Expires.UTC().Format(time.RFC3339))
	case last.Approved:
		return broken("approved, but not signed", Finding{ID: RequestNotSigned, Severity: Error, Object: last.object(), Since: since(last.Made),
			Cause: fmt.Sprintf("Certificate request %s is approved, but has no certificate: the signer of %s, which is part of the hub's kube-controller-manager, issues it within seconds.",
				last.Name, registration.SignerName),
			Turn: "the signer of the hub", Fix: []string{"kubectl hub doctor", ShellCommand("kubectl", "describe", "csr", last.Name)}})
	}
	return broken("requested "+ago(c.Now, last.Made.Time), Finding{ID: RequestWaits, Severity: Error, Object: last.object(), Since: since(last.Made),
		Cause: fmt.Sprintf("Certificate request %s, created by %s, is neither approved nor denied. The hub decides within seconds, or reports on the cluster that it leaves the request to a user. %s",
			last.Name, last.Requester, checkFirst),
		Turn: "the hub, or else an admin of the hub", Fix: c.approve()})
}

// checkFirst is printed if a request could be approved. The hub leaves a request to an admin if it cannot be sure about it.
const checkFirst = "The certificate makes its owner the agent of the cluster: check its requester before you approve it."

// approve returns the commands to review and approve the pending requests. If there are several, this program does not know the right one.
func (c *clusterChain) approve() []string {
	waiting, several := "", false
	for _, r := range c.mine() {
		if !r.Approved && !r.Refused && r.Expires.IsZero() {
			waiting, several = r.Name, waiting != ""
		}
	}
	if waiting == "" || several {
		return []string{ShellCommand("kubectl", "get", "csr", "-l", registration.ClusterNameLabel+"="+c.Name), "kubectl certificate approve <NAME OF THE RIGHT REQUEST>"}
	}
	return []string{ShellCommand("kubectl", "describe", "csr", waiting), ShellCommand("kubectl", "certificate", "approve", waiting)}
}

// waits checks the condition of the hub for a request that it leaves to an admin.
func (c *clusterChain) waits() (outcome, bool) {
	status, said := c.condition(registration.ConditionRequestWaits)
	if status != metav1.ConditionTrue {
		return outcome{}, false
	}
	return broken("a request waits", Finding{ID: RequestWaits, Severity: Error, Object: c.object(), Since: since(said.LastTransitionTime), Turn: "an admin of the hub",
		Cause: "A certificate request of the cluster waits for an admin to approve or deny it: " + strings.TrimSuffix(said.Message, ".") + ". " + checkFirst, Fix: c.approve()}).without(c.Requests.Why()), true
}

func (c *clusterChain) refused(r *CertificateRequest) outcome {
	why := ""
	if r.Why != "" {
		why = ": " + r.Why
	}
	return broken("refused"+why, Finding{ID: RequestRefused, Severity: Error, Object: r.object(), Since: since(r.Made), Turn: "an admin of the hub",
		Cause: fmt.Sprintf("Certificate request %s, created by %s, was denied or has failed%s. The agent creates another one after this one is deleted.", r.Name, r.Requester, why),
		Fix:   []string{ShellCommand("kubectl", "describe", "csr", r.Name), ShellCommand("kubectl", "delete", "csr", r.Name)}})
}

func (c *clusterChain) expired(r *CertificateRequest) outcome {
	at := metav1.NewTime(r.Expires)
	return broken("expired "+ago(c.Now, r.Expires), Finding{ID: CertificateExpired, Severity: Error, Object: r.object(), Since: &at, Turn: c.agent() + ", and an admin of the cluster",
		Cause: "The certificate of the agent has expired, so it cannot be renewed. The agent needs a bootstrap token to request another one.",
		Fix:   []string{"kubectl hub get token", "kubectl hub join --hub-token <TOKEN> --hub-apiserver <SERVER> --cluster-name " + c.Name + " --context <CONTEXT OF THE CLUSTER>"}})
}

// cannotRenew checks whether the agent does not renew its lease because it has no valid certificate, as far as the hub shows that.
func (c *clusterChain) cannotRenew() (outcome, bool) {
	if c.byAWS() != "" {
		return outcome{}, false
	}
	if o, found := c.waits(); found {
		return o, true
	}
	mine := c.mine()
	if len(mine) == 0 {
		return outcome{}, false
	}
	switch last := &mine[len(mine)-1]; {
	case last.Refused:
		return c.refused(last), true
	case !last.Expires.IsZero() && last.Expires.Before(c.Now):
		return c.expired(last), true
	}
	return outcome{}, false
}

// certificate checks whether a working agent will continue to work.
func (c *clusterChain) certificate() outcome {
	if c.byAWS() != "" {
		return passed("none: by AWS IAM")
	}
	if o, found := c.waits(); found {
		o.finding.Severity = Warning
		return o
	}
	status, said := c.condition(registration.ConditionCertificateRotated)
	switch {
	case status == metav1.ConditionFalse:
		return broken(said.Message, Finding{ID: CertificateNotRenewed, Severity: Warning, Object: c.object(), Since: since(said.LastTransitionTime), Turn: c.agent() + ", and an admin of the hub",
			Cause: "The agent works, but cannot renew its certificate: " + said.Message + ". The hub loses the agent when the certificate expires.",
			Fix:   []string{ShellCommand("kubectl", "get", "csr", "-l", registration.ClusterNameLabel+"="+c.Name), c.onCluster()}})
	case said != nil:
		return passed("%s", said.Message)
	}
	return passed("valid: the agent connects with it")
}
