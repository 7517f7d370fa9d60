// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentcsr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// The hub approves the requests of the agent.
func TestParse_AcceptsOutputOfNew(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	data, err := PEM(key, "c1", "agent")
	if err != nil {
		t.Fatal(err)
	}
	want := Request{Cluster: "c1", User: "system:open-cluster-management:c1:agent", KeySHA256: fmt.Sprintf("%x", sha256.Sum256(der))}
	if got, err := Parse(New("c1", data)); err != nil || *got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := Parse(New("c2", data)); err == nil {
		t.Errorf("%+v for another cluster", got)
	}
}

func TestAsker(t *testing.T) {
	r := &Request{Cluster: "c1", User: "system:open-cluster-management:c1:agent"}
	own := []string{"system:open-cluster-management:managed-clusters", "system:open-cluster-management:c1"}
	for name, test := range map[string]struct {
		user   string
		groups []string
		named  []string
		want   Asker
	}{
		"a token":                     {user: "system:bootstrap:abcdef", want: Bootstrap},
		"clusteradm's":                {user: "system:serviceaccount:open-cluster-management:agent-registration-bootstrap", want: Bootstrap},
		"another of its namespace":    {user: "system:serviceaccount:open-cluster-management:default"},
		"who is named":                {user: "ann", named: []string{"bob", "ann"}, want: Bootstrap},
		"who is not":                  {user: "ann", named: []string{"bob"}},
		"nobody":                      {},
		"the agent":                   {user: r.User, groups: own, want: Agent},
		"the agent, authenticated":    {user: r.User, groups: append([]string{"system:authenticated"}, own...), want: Agent},
		"the agent, who is named":     {user: r.User, groups: own, named: []string{r.User}, want: Agent},
		"its user without its groups": {user: r.User, groups: own[:1]},
		"its user in another group":   {user: r.User, groups: append([]string{"system:masters"}, own...)},
		"another agent":               {user: "system:open-cluster-management:c1:other", groups: own},
	} {
		spec := &certificatesv1.CertificateSigningRequestSpec{Username: test.user, Groups: test.groups}
		if got := r.Asker(spec, test.named); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestDecided(t *testing.T) {
	type conditions = []certificatesv1.CertificateSigningRequestCondition
	for name, test := range map[string]struct {
		conditions        conditions
		certificate       string
		pending, approved bool
	}{
		"new":                     {pending: true},
		"another's condition":     {conditions: conditions{{Type: "Looked", Status: "True"}}, pending: true},
		"approved":                {conditions: conditions{{Type: "Approved", Status: "True"}}, approved: true},
		"approved and signed":     {conditions: conditions{{Type: "Approved", Status: "True"}}, certificate: "x", approved: true},
		"approved, not":           {conditions: conditions{{Type: "Approved", Status: "False"}}},
		"denied":                  {conditions: conditions{{Type: "Denied", Status: "True"}}},
		"approved, then denied":   {conditions: conditions{{Type: "Approved", Status: "True"}, {Type: "Denied", Status: "True"}}},
		"denied before":           {conditions: conditions{{Type: "Denied", Status: "True"}, {Type: "Approved", Status: "True"}}},
		"approved, then failed":   {conditions: conditions{{Type: "Approved", Status: "True"}, {Type: "Failed", Status: "True"}}},
		"signed without approval": {certificate: "x"},
	} {
		csr := &certificatesv1.CertificateSigningRequest{Status: certificatesv1.CertificateSigningRequestStatus{
			Conditions: test.conditions, Certificate: []byte(test.certificate)}}
		if pending, approval := IsPending(csr), Approval(csr); pending != test.pending || (approval != nil) != test.approved {
			t.Errorf("%s: pending %t, approval %v", name, pending, approval)
		}
	}
}
