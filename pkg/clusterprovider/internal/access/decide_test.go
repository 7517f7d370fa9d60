// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
)

const (
	oursFinalizer = "e.p.clusters.openmcp.cloud/accessrequest"
	until         = "e.p.clusters.openmcp.cloud/tokens-until"
)

var (
	gone       = secretSeen{err: apierrors.NewNotFound(corev1.Resource("secrets"), "s")}
	anyTime    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	notHeld    = hub.Because(hub.ReasonClusterNotHeld, errors.New("it is not yours"))
	notFound   = hub.Because(v1alpha1.ReasonInvalidReference, errors.New("not found"))
	errUnknown = errors.New("the hub does not respond")
)

// pending returns a request that is prepared for a provider and has no access yet.
func pending() *observation {
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: "ann", UID: "1", Generation: 2, CreationTimestamp: metav1.NewTime(anyTime.Add(-time.Hour)),
		Labels: map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: "e.p.c"},
	}}
	ar.Spec.ClusterRef, ar.Spec.Token = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}, &v1alpha1.TokenConfig{}
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_PENDING, 2
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	cluster.Status.Phase = v1alpha1.StatusPhaseReady
	return &observation{
		own: hub.Identity{Name: "p", Environment: "e"}, now: anyTime, ar: ar, cluster: cluster, trustsOIDC: true,
		closer: &closer{endpoint: "here", answer: gone, source: gone, sources: true},
	}
}

// granted returns a request with a token of 100 hours, of which one has passed.
func granted() *observation {
	s := pending()
	s.ar.Finalizers = []string{oursFinalizer}
	s.ar.Status.Phase, s.ar.Status.SecretRef = v1alpha1.REQUEST_GRANTED, &v1alpha1.LocalObjectReference{Name: "ann.kubeconfig"}
	s.condition(clusterprovider.ConditionAccess, metav1.ConditionTrue, hub.ReasonGranted, "")
	owner := []metav1.OwnerReference{{UID: "1", Controller: new(true)}}
	s.closer.answer = secretSeen{Secret: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "teams", Name: "ann.kubeconfig", Labels: s.own.OwnLabels(), OwnerReferences: owner,
			Annotations: map[string]string{answer.EndpointAnnotation: "here"},
		},
		Data: map[string][]byte{v1alpha1.SecretKeyKubeconfig: []byte("kubeconfig")},
	}}
	s.closer.source = secretSeen{Secret: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: "1", Labels: s.own.OwnLabels()},
	}}
	s.token(anyTime.Add(-time.Hour), anyTime.Add(99*time.Hour))
	return s
}

// byOIDC returns a request with access by an issuer.
func byOIDC() *observation {
	s := granted()
	s.ar.Spec.Token, s.ar.Spec.OIDC = nil, &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{Name: "corp", Issuer: "https://corp"}}
	delete(s.closer.answer.Data, v1alpha1.SecretKeyExpirationTimestamp)
	trust.Record(s.ar, true)
	return s
}

// withdrawn returns a request whose status reports that its access was revoked with the cluster, because that is not its Cluster's.
func withdrawn() *observation {
	s := granted()
	s.ar.Status.Phase, s.ar.Status.SecretRef = v1alpha1.REQUEST_PENDING, nil
	s.closer.answer, s.closer.source, s.closer.withheld = gone, gone, notHeld
	s.condition(clusterprovider.ConditionAccess, metav1.ConditionFalse, hub.ReasonClusterNotHeld, notHeld.Error())
	return s
}

func (s *observation) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	hub.SetCondition(&s.ar.Status.Status, s.ar.Generation, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

func (s *observation) token(created, expires time.Time) {
	s.closer.answer.Data[v1alpha1.SecretKeyCreationTimestamp] = []byte(unix(created))
	s.closer.answer.Data[v1alpha1.SecretKeyExpirationTimestamp] = []byte(unix(expires))
}

func (s *observation) ttl(left time.Duration) {
	s.ar.Spec.TTL = &duration.Duration{Duration: time.Hour + left}
}

func (s *observation) annotate(operation string) {
	s.ar.Annotations = map[string]string{v1alpha1.OperationAnnotation: operation}
}

func (s *observation) delete() { s.ar.DeletionTimestamp = new(metav1.NewTime(anyTime)) }

// edit changes the spec after the grant, and the change has been prepared again.
func (s *observation) edit() {
	s.ar.Generation, s.ar.Status.ObservedGeneration, s.ar.Status.Phase = 3, 3, v1alpha1.REQUEST_PENDING
}

// String returns the whole decision.
func (d decision) String() string {
	var words []string
	if d.deny {
		words = append(words, "deny, ")
	}
	if d.hold {
		words = append(words, "hold, ")
	}
	words = append(words, string(d.do))
	if d.because != "" {
		words = append(words, ": "+d.because)
	}
	if d.why != nil {
		words = append(words, ": "+hub.ReasonOf(d.why, d.why.Error()))
	}
	if d.mustRevoke {
		words = append(words, ", take back")
	}
	if d.forced {
		words = append(words, ", forced")
	}
	if d.again > 0 {
		words = append(words, ", again in "+d.again.String())
	}
	return strings.Join(words, "")
}

// decided maps changes to expected decisions.
type decided map[string]struct {
	change func(s *observation)
	want   string
}

func decides(t *testing.T, from func() *observation, cases decided, always ...func(s *observation)) {
	t.Helper()
	for name, c := range cases {
		s := from()
		for _, change := range always {
			change(s)
		}
		c.change(s)
		before := s.ar.DeepCopy()
		if got := decide(s).String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if !equality.Semantic.DeepEqual(before, s.ar) {
			t.Errorf("%s: the decision has changed the request", name)
		}
	}
}

func TestDecide_NewRequest(t *testing.T) {
	const first = "grant: its current spec has not been granted"
	decides(t, pending, decided{
		"all is well":                        {func(*observation) {}, first},
		"the closer facts are not read":      {func(s *observation) { s.closer = nil }, "look"},
		"it is to be ignored":                {func(s *observation) { s.annotate("ignore") }, "leave"},
		"it has the annotation reconcile":    {func(s *observation) { s.annotate("reconcile") }, first + ", forced"},
		"it is not prepared":                 {func(s *observation) { s.condition("Prepared", metav1.ConditionFalse, "X", "") }, "leave"},
		"it is prepared as it was":           {func(s *observation) { s.condition("Prepared", metav1.ConditionTrue, "X", ""); s.ar.Generation++ }, "leave"},
		"it has no labels":                   {func(s *observation) { s.ar.Labels = nil }, "leave"},
		"another provider's":                 {func(s *observation) { s.ar.Labels[v1alpha1.ProviderLabel] = "q" }, "leave"},
		"it is deleted":                      {func(s *observation) { s.delete() }, "leave"},
		"it is in no phase yet":              {func(s *observation) { s.ar.Status.Phase = "" }, "leave"},
		"of a provider elsewhere":            {func(s *observation) { s.cluster, s.noCluster = nil, errNotOurs }, "leave"},
		"the Cluster is gone":                {func(s *observation) { s.cluster, s.noCluster = nil, notFound }, "explain: InvalidReference, again in 5m0s"},
		"the Cluster cannot be read":         {func(s *observation) { s.cluster, s.noCluster = nil, errUnknown }, "explain: the hub does not respond"},
		"the cluster is being taken":         {func(s *observation) { s.closer.taken = true }, "wait, again in 2s"},
		"the Cluster is being deleted":       {func(s *observation) { s.cluster.DeletionTimestamp = new(metav1.Now()) }, "explain: ClusterNotReady, again in 5m0s"},
		"the Cluster is not ready":           {func(s *observation) { s.cluster.Status.Phase = "Progressing" }, "explain: ClusterNotReady, again in 5m0s"},
		"the Cluster does not have it":       {func(s *observation) { s.closer.withheld = notHeld }, "explain: ClusterNotHeld, again in 5m0s"},
		"unknown whether it has it":          {func(s *observation) { s.closer.withheld = errUnknown }, "explain: the hub does not respond"},
		"the cluster cannot be reached":      {func(s *observation) { s.closer.unreachable = errUnknown }, "explain: the hub does not respond"},
		"its ttl is not over":                {func(s *observation) { s.ttl(time.Second) }, first},
		"its ttl is over":                    {func(s *observation) { s.ttl(0) }, "refuse: ConfigurationProblem, take back, again in 5m0s"},
		"an issuer":                          {func(s *observation) { s.ar.Spec.OIDC = &v1alpha1.OIDCConfig{} }, first},
		"an issuer, without support":         {func(s *observation) { s.ar.Spec.OIDC, s.trustsOIDC = &v1alpha1.OIDCConfig{}, false }, "refuse: OIDCNotSupported, take back, again in 5m0s"},
		"its Secret cannot be read":          {func(s *observation) { s.closer.answer.err = errUnknown }, "refuse: the hub does not respond"},
		"its Secret may not be read":         {func(s *observation) { s.closer.answer.err = hub.Because(hub.ReasonSecretsForbidden, errUnknown) }, "refuse: SecretsForbidden, take back"},
		"its Secret has another owner":       {func(s *observation) { s.closer.answer = secretSeen{Secret: &corev1.Secret{}} }, "refuse: ResourceNotManaged, take back"},
		"its source has another owner":       {func(s *observation) { s.closer.source = secretSeen{Secret: &corev1.Secret{}} }, "refuse: ResourceNotManaged, take back"},
		"a source on a hub that serves none": {func(s *observation) { s.closer.source, s.closer.sources = secretSeen{Secret: &corev1.Secret{}}, false }, first},
	})
}

func TestDecide_GrantedRequest(t *testing.T) {
	look := ", again in " + nextCheck(granted().ar, anyTime, time.Time{}).String()
	const changed = "grant: its Secret is missing or was changed"
	decides(t, granted, decided{
		"all is well":                      {func(*observation) {}, "keep" + look},
		"the closer facts are not read":    {func(s *observation) { s.closer = nil }, "look"},
		"it has the annotation reconcile":  {func(s *observation) { s.annotate("reconcile") }, "grant: an annotation requests it, forced"},
		"it is to be ignored":              {func(s *observation) { s.annotate("ignore") }, "leave"},
		"it is of another generation":      {func(s *observation) { s.edit() }, "grant: its current spec has not been granted"},
		"it is changed, and ignored":       {func(s *observation) { s.ar.Generation++ }, "leave"},
		"its status has no access":         {func(s *observation) { s.condition("AccessReady", metav1.ConditionFalse, "X", "") }, "grant: its current spec has not been granted"},
		"its Secret is gone":               {func(s *observation) { s.closer.answer = gone }, changed},
		"its Secret is another request's":  {func(s *observation) { s.closer.answer.OwnerReferences[0].UID = "2" }, "refuse: ResourceNotManaged"},
		"its Secret has no kubeconfig":     {func(s *observation) { s.closer.answer.Data["kubeconfig"] = nil }, changed},
		"its source is gone":               {func(s *observation) { s.closer.source = gone }, "grant: its source of short-lived tokens is missing or was changed"},
		"the hub has no place for sources": {func(s *observation) { s.closer.source, s.closer.sources = gone, false }, "keep" + look},
		"the cluster is elsewhere":         {func(s *observation) { s.closer.endpoint = "there" }, "grant: the endpoint of the cluster changed"},
		"the endpoint is unknown":          {func(s *observation) { s.closer.endpoint, s.closer.unreachable = "", errUnknown }, "keep" + look},
		"the Cluster is not ready":         {func(s *observation) { s.cluster.Status.Phase = "Progressing" }, "keep" + look},
		"the Cluster is being deleted":     {func(s *observation) { s.cluster.DeletionTimestamp = new(metav1.Now()) }, "keep" + look},
		"the Cluster is gone":              {func(s *observation) { s.cluster, s.noCluster = nil, notFound }, "explain: InvalidReference, again in 5m0s"},
		"the cluster is being taken":       {func(s *observation) { s.closer.taken = true }, "wait, again in 2s"},
		"the Cluster does not have it":     {func(s *observation) { s.closer.withheld = notHeld }, "withdraw: ClusterNotHeld, take back, again in 5m0s"},
		"unknown whether it has it":        {func(s *observation) { s.closer.withheld = errUnknown }, "keep: the hub does not respond"},
		"unknown, with the annotation reconcile": {func(s *observation) { s.closer.withheld = errUnknown; s.annotate("reconcile") },
			"explain: the hub does not respond, forced"},
		"its token is old": {func(s *observation) { s.token(anyTime.Add(-80*time.Hour), anyTime.Add(20*time.Hour)) },
			"renew: its token expires at 2030-01-02T23:04:05Z"},
		"its token is old, and the cluster away": {func(s *observation) {
			s.token(anyTime.Add(-80*time.Hour), anyTime.Add(20*time.Hour))
			s.closer.unreachable = errUnknown
		}, "explain: the hub does not respond"},
		"its token is to be renewed in a minute": {func(s *observation) {
			created, expires, _ := answer.Lifetime(s.closer.answer.Secret)
			s.now = answer.RenewalOf(s.ar, created, expires).Add(-time.Minute)
		}, "keep, again in 1m0s"},
		"its token ends with it": {func(s *observation) { s.ttl(99 * time.Hour); s.now = anyTime.Add(98 * time.Hour) },
			"keep, again in " + nextCheck(granted().ar, anyTime.Add(98*time.Hour), time.Time{}).String()},
		"its token outlives it":          {func(s *observation) { s.ttl(time.Hour) }, "grant: its token outlives the request, or has no expiration time"},
		"its token has no expiration":    {func(s *observation) { s.closer.answer.Data["expirationTimestamp"] = []byte("soon") }, "grant: its token outlives the request, or has no expiration time"},
		"a cluster whose clock is ahead": {func(s *observation) { s.ttl(time.Hour); s.closer.answer.Annotations[until] = "2030-01-02T04:04:05Z" }, "keep" + look},
		"its ttl is over":                {func(s *observation) { s.ttl(0) }, "refuse: ConfigurationProblem, again in 5m0s"},
		"it asks for an issuer":          {func(s *observation) { s.ar.Spec.OIDC, s.trustsOIDC = &v1alpha1.OIDCConfig{}, false; s.edit() }, "refuse: OIDCNotSupported, take back, again in 5m0s"},
		"its Secrets may not be read": {func(s *observation) {
			s.closer.answer = secretSeen{err: hub.Because(hub.ReasonSecretsForbidden, errUnknown)}
		}, "refuse: SecretsForbidden"},
		"the same when it asks for more": {func(s *observation) {
			s.closer.answer = secretSeen{err: hub.Because(hub.ReasonSecretsForbidden, errUnknown)}
			s.edit()
		}, "refuse: SecretsForbidden, take back"},
		"its finalizer was removed":           {func(s *observation) { s.ar.Finalizers, s.closer = nil, nil }, "hold, look"},
		"its finalizer, with the labels":      {func(s *observation) { s.ar.Finalizers, s.ar.Labels = nil, nil }, "hold, leave"},
		"its finalizer, of another Cluster's": {func(s *observation) { s.ar.Finalizers, s.ar.Labels, s.noCluster = nil, nil, notFound }, "leave"},
		"its finalizer, and it is deleted":    {func(s *observation) { s.ar.Finalizers = nil; s.delete() }, "leave"},
		"its finalizer, and it is denied":     {func(s *observation) { s.ar.Finalizers, s.denied = nil, true }, "deny, hold, end, take back"},
	})
}

// TestDecide_AfterUpgrade: access of earlier versions is granted again if their records are incomplete, and otherwise kept.
func TestDecide_AfterUpgrade(t *testing.T) {
	look := ", again in " + nextCheck(granted().ar, anyTime, time.Time{}).String()
	decides(t, byOIDC, decided{
		"the status is complete":             {func(*observation) {}, "keep" + look},
		"not which issuer is trusted":        {func(s *observation) { s.ar.Status.Conditions = s.ar.Status.Conditions[:1] }, "grant: its status does not record the trusted issuer"},
		"another issuer is":                  {func(s *observation) { s.ar.Spec.OIDC.Issuer = "https://other" }, "grant: its status does not record the trusted issuer"},
		"no short-lived tokens of an issuer": {func(s *observation) { s.closer.source = gone }, "keep" + look},
		"not until when tokens are valid": {func(s *observation) {
			s.ar.Spec.OIDC, s.ar.Spec.Token = nil, &v1alpha1.TokenConfig{}
			s.token(anyTime, anyTime.Add(time.Hour))
		}, "keep, again in " + nextCheck(granted().ar, anyTime, time.Time{}).String()},
		"nor whether it was denied": {func(s *observation) { s.ar.Status.Phase, s.denied = v1alpha1.REQUEST_DENIED, true }, "deny, end, take back"},
	})
}

func TestDecide_Denied(t *testing.T) {
	decides(t, pending, decided{
		"by hand or by the policy":      {func(s *observation) { s.ar.Status.Phase, s.denied = v1alpha1.REQUEST_DENIED, true }, "deny, leave"},
		"and set back to Pending":       {func(s *observation) { s.denied = true }, "deny, leave"},
		"it had access":                 {func(s *observation) { s.denied, s.ar.Finalizers = true, []string{oursFinalizer} }, "deny, end, take back"},
		"the Cluster is gone":           {func(s *observation) { s.denied, s.noCluster, s.ar.Finalizers = true, notFound, []string{oursFinalizer} }, "deny, end: InvalidReference"},
		"it is deleted":                 {func(s *observation) { s.denied = true; s.delete() }, "leave"},
		"it is deleted, and had access": {func(s *observation) { s.denied, s.ar.Finalizers = true, []string{oursFinalizer}; s.delete() }, "end, take back"},
		"it is to be ignored":           {func(s *observation) { s.denied = true; s.annotate("ignore") }, "leave"},
		"it is for no Cluster yet": {func(s *observation) {
			s.denied, s.ar.Labels, s.ar.Spec.ClusterRef, s.noCluster = true, nil, nil, notFound
		}, "deny, leave"},
		"without labels, for a Cluster": {func(s *observation) { s.denied, s.ar.Labels = true, nil }, "deny, leave"},
		"it is another provider's":      {func(s *observation) { s.denied, s.ar.Labels, s.noCluster = true, nil, errNotOurs }, "leave"},
		"another's, by the phase alone": {func(s *observation) {
			s.ar.Status.Phase, s.ar.Labels, s.noCluster = v1alpha1.REQUEST_DENIED, nil, notFound
		}, "leave"},
		"not at all": {func(*observation) {}, "grant: its current spec has not been granted"},
	})
}

func TestDecide_Deletion(t *testing.T) {
	decides(t, granted, decided{
		"it is deleted":                     {func(*observation) {}, "end, take back"},
		"without labels":                    {func(s *observation) { s.ar.Labels = nil }, "end, take back"},
		"the closer facts are not read":     {func(s *observation) { s.closer = nil }, "end, take back"},
		"the Cluster is gone":               {func(s *observation) { s.cluster, s.noCluster = nil, notFound }, "end: InvalidReference"},
		"the Cluster is another provider's": {func(s *observation) { s.cluster, s.noCluster = nil, errNotOurs }, "end: the cluster belongs to another provider"},
		"the Cluster cannot be read":        {func(s *observation) { s.cluster, s.noCluster = nil, errUnknown }, "explain: revoking access: the hub does not respond"},
		"the Cluster is not ready":          {func(s *observation) { s.cluster.Status.Phase = "Progressing" }, "end, take back"},
		"the Cluster does not have it":      {func(s *observation) { s.closer.withheld = notHeld }, "end, take back"},
		"it has the annotation reconcile":   {func(s *observation) { s.annotate("reconcile") }, "end, take back"},
		"it is to be ignored":               {func(s *observation) { s.annotate("ignore") }, "leave"},
		"another's finalizer alone":         {func(s *observation) { s.ar.Finalizers = []string{"example.com/x"} }, "leave"},
	}, (*observation).delete)
	decides(t, withdrawn, decided{
		"no access remains":             {func(*observation) {}, "end: ClusterNotHeld"},
		"the closer facts are not read": {func(s *observation) { s.closer = nil }, "look"},
		"the cluster came back":         {func(s *observation) { s.closer.withheld = nil }, "end, take back"},
		"unknown":                       {func(s *observation) { s.closer.withheld = errUnknown }, "end, take back"},
		"its Secret may be there":       {func(s *observation) { s.ar.Status.SecretRef = &v1alpha1.LocalObjectReference{Name: "x"} }, "end, take back"},
		"access may remain": {func(s *observation) {
			s.condition("AccessReady", "False", hub.ReasonClusterNotHeld, "it is not yours; revoking access: no")
		}, "end, take back"},
		"another reason": {func(s *observation) { s.condition("AccessReady", "False", "X", "it is not yours") }, "end, take back"},
	}, (*observation).delete)
}

func TestDecide_Withdrawn(t *testing.T) {
	decides(t, withdrawn, decided{
		"no access remains": {func(*observation) {}, "withdraw: ClusterNotHeld, again in 5m0s"},
		"access may remain": {func(s *observation) {
			s.condition("AccessReady", "False", hub.ReasonClusterNotHeld, "it is not yours; revoking access: no")
		}, "withdraw: ClusterNotHeld, take back, again in 5m0s"},
		"it is changed":                   {func(s *observation) { s.edit() }, "withdraw: ClusterNotHeld, take back, again in 5m0s"},
		"it has the annotation reconcile": {func(s *observation) { s.annotate("reconcile") }, "withdraw: ClusterNotHeld, forced, again in 5m0s"},
		"the cluster came back":           {func(s *observation) { s.closer.withheld = nil }, "grant: its current spec has not been granted"},
		"it was never held":               {func(s *observation) { s.ar.Finalizers = nil }, "explain: ClusterNotHeld, again in 5m0s"},
	})
}

// TestDecision_OnClusterRejection: what the cluster rejects is reported like what is rejected before the request to it.
func TestDecision_OnClusterRejection(t *testing.T) {
	for name, c := range map[string]struct {
		why  error
		from func() *observation
		want string
	}{
		"for good":                  {hub.Because(hub.ReasonOIDCPrefixRefused, errUnknown), pending, "refuse: OIDCPrefixRefused, take back, again in 5m0s"},
		"another issuer is first":   {hub.Because(hub.ReasonOIDCConflict, errUnknown), pending, "refuse: OIDCConflict, take back"},
		"not what was given before": {hub.Because(hub.ReasonOIDCIssuerRefused, errUnknown), granted, "refuse: OIDCIssuerRefused, again in 5m0s"},
		"not for good":              {hub.Because(hub.ReasonRecreating, errUnknown), pending, "refuse: WaitingForRecreation"},
		"it does not respond":       {errUnknown, pending, "refuse: the hub does not respond"},
		"it is on its way":          {hub.Because(hub.ReasonClusterNotReady, clusterprovider.NotYet{}), pending, "refuse: ClusterNotReady, again in 2s"},
	} {
		if got := (decision{do: grant}).refuse(c.from().ar, c.why).String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	d := decision{}.refuse(pending().ar, hub.Because(hub.ReasonOIDCPrefixRefused, errors.New("no"))).alsoFailed(errUnknown)
	if got := d.String(); got != "refuse: OIDCPrefixRefused, take back" || d.why.Error() != "no\nthe hub does not respond" {
		t.Errorf("access that cannot be revoked: %s, %v", got, d.why)
	}
	if d := d.alsoFailed(clusterprovider.NotYet{}); d.again != hub.RetryInterval {
		t.Errorf("a cluster in progress is retried after %s", d.again)
	}
}

func TestStillValid(t *testing.T) {
	for name, c := range map[string]struct {
		from   func() *observation
		change func(s *observation)
		want   bool
	}{
		"a token":                        {granted, func(*observation) {}, true},
		"an issuer":                      {byOIDC, func(*observation) {}, true},
		"a token that has expired":       {granted, func(s *observation) { s.now = anyTime.Add(99 * time.Hour) }, false},
		"a token without expiration":     {granted, func(s *observation) { s.closer.answer.Data["expirationTimestamp"] = nil }, false},
		"its Secret is gone":             {granted, func(s *observation) { s.closer.answer = gone }, false},
		"its Secret has another owner":   {granted, func(s *observation) { s.closer.answer.Labels = nil }, false},
		"the closer facts are not read":  {granted, func(s *observation) { s.closer = nil }, false},
		"its Secret is not read":         {granted, func(s *observation) { s.closer.answer = secretSeen{} }, false},
		"it is of another generation":    {granted, func(s *observation) { s.ar.Generation++ }, false},
		"it is pending":                  {granted, func(s *observation) { s.ar.Status.Phase = v1alpha1.REQUEST_PENDING }, false},
		"what could not be renewed last": {granted, func(s *observation) { s.condition("AccessReady", metav1.ConditionFalse, "X", "") }, true},
	} {
		s := c.from()
		c.change(s)
		if got := s.stillValid(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
