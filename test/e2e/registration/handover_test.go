// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// controllersAudit makes the front audit the writes of hub-controller-manager, except those of leader election.
const controllersAudit = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: coordination.k8s.io, resources: [leases]}, {resources: [events]}]
  namespaces: [clusterhub-system]
- level: Metadata
  users: ["system:serviceaccount:clusterhub-system:hub-controller-manager"]
  verbs: [create, update, patch, delete, deletecollection]
`

// relay is a hub whose hub-controller-managers the test runs, and a fake AWS that shows acts that are done twice.
type relay struct {
	*localhub.Instance
	aws      *fakeaws.Server
	members  *fakeaws.Account
	self     irsa.ClusterARN
	env      []string
	audit    string
	clusters []string
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{aws: harness.Must(fakeaws.Start(1))(t), audit: filepath.Join(t.TempDir(), "audit.log")}
	t.Cleanup(r.aws.Close)
	account := harness.Must(r.aws.AddAccount("111111111111", "us-west-2"))(t)
	r.members = harness.Must(r.aws.AddAccount("222222222222", "us-west-2"))(t)
	r.self = harness.Must(irsa.ParseClusterARN(account.AddCluster(fakeaws.Cluster{Name: "hub"})))(t)
	user := harness.Must(account.AddUser("creator", irsa.CreatorPolicy(r.self, irsa.HubRoles{AccessEntries: true}).JSON()))(t)
	env := r.aws.Env()
	env["AWS_REGION"], env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"] = "us-west-2", user.AccessKeyID, user.SecretAccessKey
	for name, value := range env {
		r.env = append(r.env, name+"="+value)
	}
	policy := filepath.Join(t.TempDir(), "audit.yaml")
	if err := os.WriteFile(policy, []byte(controllersAudit), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Instance = harness.OwnHub(t, func(c *localhub.Options) {
		c.WithoutHubControllerManager = true
		c.FrontArgs = []string{"--audit-policy-file=" + policy, "--audit-log-path=" + r.audit}
	})
	return r
}

// controllers is one of several hub-controller-managers, with the defaults of leader election.
type controllers struct {
	cmd   *exec.Cmd
	out   harness.Buffer
	ended chan struct{}
}

// start starts a hub-controller-manager. The name is the user agent of its requests.
func (r *relay) start(t *testing.T, name string) *controllers {
	t.Helper()
	c := &controllers{ended: make(chan struct{})}
	c.cmd = exec.Command(harness.Binary(t, "hub-controller-manager"), "--kubeconfig="+filepath.Join(r.Dir(), "hub-controller-manager.kubeconfig"),
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "--controllers=sets,placements,works,access,registration",
		"--registration-drivers=csr,awsirsa", "--hub-cluster-arn="+r.self.String())
	c.cmd.Args[0] = name
	c.cmd.Env = append(os.Environ(), r.env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // also ends a stopped process
		<-c.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", name, c.out.String())
		}
	})
	return c
}

func (c *controllers) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits until the process exits by itself.
func (c *controllers) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(harness.Timeout):
		t.Fatalf("%s has not ended after %s", c.cmd.Args[0], harness.Timeout)
	}
	return c.cmd.ProcessState.ExitCode()
}

// holder returns the holder of the leader's Lease.
func (r *relay) holder(ctx context.Context, t *testing.T) string {
	t.Helper()
	lease, err := harness.Kube(t, r.AdminConfig()).CoordinationV1().Leases("clusterhub-system").Get(ctx, "hub-controller-manager", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// await waits until a different process leads, and returns its identity and how long that took.
func (r *relay) await(t *testing.T, before string) (holder string, took time.Duration) {
	t.Helper()
	begun := time.Now()
	harness.Eventually(t, "somebody else leads", func(ctx context.Context) (bool, error) {
		holder = r.holder(ctx, t)
		return holder != "" && holder != before, nil
	})
	return holder, time.Since(begun)
}

// join creates n more clusters that are accepted from the beginning.
func (r *relay) join(t *testing.T, n int) {
	t.Helper()
	client := harness.Ours(t, r.AdminConfig()).ClusterV1().ManagedClusters()
	for range n {
		name := harness.Unique("relay")
		arn := fmt.Sprintf("arn:aws:eks:us-west-2:%s:cluster/%s", r.members.ID, name)
		identity := harness.Must(irsa.NewIdentity(r.self, harness.Must(irsa.ParseClusterARN(arn))(t)))(t)
		harness.Must(r.members.AddRole(fakeaws.Role{Name: identity.ManagedRole(), Tags: identity.Tags(), Trust: `{"Version":"2012-10-17",
			"Statement":[{"Effect":"Allow","Principal":{"AWS":"` + r.members.ID + `"},"Action":"sts:AssumeRole"}]}`}))(t)
		harness.Must(client.Create(t.Context(), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{registration.AnnotationManagedClusterARN: arn}},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}, metav1.CreateOptions{}))(t)
		r.clusters = append(r.clusters, name)
	}
}

// accepted returns the number of clusters that have all their objects, or -1 on an error.
func (r *relay) accepted(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	list, err := harness.Ours(t, r.AdminConfig()).ClusterV1().ManagedClusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return -1
	}
	for i := range list.Items {
		if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, registration.ConditionHubAccepted) {
			n++
		}
	}
	return n
}

func (r *relay) awaitAccepted(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "all clusters are accepted", func(ctx context.Context) (bool, error) {
		if n := r.accepted(ctx, t); n < len(r.clusters) {
			return false, fmt.Errorf("%d of %d are", n, len(r.clusters))
		}
		return true, nil
	})
}

// turn has the writes of one process.
type turn []auditv1.Event

// turns returns the turns of all processes, by their names.
func (r *relay) turns(t *testing.T) map[string]turn {
	t.Helper()
	turns := map[string]turn{}
	for _, e := range harness.AuditEvents(t, r.audit) {
		name, _, _ := strings.Cut(e.UserAgent, "/")
		if e.ResponseStatus.Code < 300 {
			turns[name] = append(turns[name], e)
		}
	}
	return turns
}

// first returns when the turn began.
func (all turn) first() time.Time {
	return slices.MinFunc(all, func(a, b auditv1.Event) int { return a.StageTimestamp.Compare(b.StageTimestamp.Time) }).StageTimestamp.Time
}

// since returns the writes that were requested after a time.
func (all turn) since(at time.Time) (late []string) {
	for _, e := range all {
		if e.RequestReceivedTimestamp.After(at) {
			late = append(late, e.Verb+" "+e.RequestURI)
		}
	}
	return late
}

// TestHandover_NextLeaderCompletes ends the leader in every possible way, each time in the middle of its work.
func TestHandover_NextLeaderCompletes(t *testing.T) {
	const (
		// Three times the lease duration: acquisition is retried every 2 s or slightly more, and the machine may be busy.
		lease = 45 * time.Second
		// The lease was released.
		atOnce = 10 * time.Second
	)
	r := newRelay(t)
	a := r.start(t, "relay-a")
	holder, _ := r.await(t, "")
	b := r.start(t, "relay-b")
	r.join(t, 5)
	r.awaitAccepted(t)

	step := func(how string, limit time.Duration, end func()) {
		t.Helper()
		r.join(t, 20)
		end()
		done := r.accepted(t.Context(), t)
		r.join(t, 5) // which no process has started with
		var took time.Duration
		holder, took = r.await(t, holder)
		t.Logf("%s: %d of %d clusters were accepted; after %s somebody else led", how, done, len(r.clusters), took.Round(time.Millisecond))
		if took > limit {
			t.Errorf("%s: somebody else leads after %s, want %s at most", how, took, limit)
		}
		r.awaitAccepted(t)
	}

	step("killed", lease, func() { a.signal(t, syscall.SIGKILL) })

	c := r.start(t, "relay-c")
	step("asleep", lease, func() { b.signal(t, syscall.SIGSTOP) })
	b.signal(t, syscall.SIGCONT)
	if code := b.exitCode(t); code == 0 {
		t.Error("who has lost the lease ends as if nothing had happened")
	}

	d := r.start(t, "relay-d")
	harness.Eventually(t, "the last one stands by", func(context.Context) (bool, error) {
		return strings.Contains(d.out.String(), "Attempting to acquire leader lease"), nil
	})
	step("asked to end", atOnce, func() { c.signal(t, syscall.SIGTERM) })
	if code := c.exitCode(t); code != 0 {
		t.Errorf("who was asked to end ends with %d", code)
	}

	// Each process had its turn, and none acted in the turn of a different one.
	turns, names := r.turns(t), []string{"relay-a", "relay-b", "relay-c", "relay-d"}
	if got := slices.Sorted(maps.Keys(turns)); !slices.Equal(got, names) {
		t.Fatalf("%v have acted", got)
	}
	for i, name := range names[1:] {
		late := turns[names[i]].since(turns[name].first())
		if i == 1 {
			// A process that was suspended notices a moment later that it has lost the lease. Its writes to clusters in that moment have an outdated
			// version and are rejected; the numbers of clusters in sets, and events, are not.
			late = slices.DeleteFunc(late, func(what string) bool {
				return strings.Contains(what, "/managedclustersets/") || strings.Contains(what, "/events")
			})
		}
		if len(late) > 0 {
			t.Errorf("%s still acts when %s does:\n%s", names[i], name, strings.Join(late, "\n"))
		}
	}
	// Each object in AWS was created once.
	made := map[string]int{}
	for _, call := range r.aws.Calls("iam:CreateRole", "eks:CreateAccessEntry") {
		if call.Error == "" {
			role, _ := call.Params["RoleName"].(string)
			if principal, ok := call.Params["principalArn"].(string); ok {
				role = path.Base(principal)
			}
			made[call.Operation+" "+role]++
		}
	}
	if len(made) != 2*len(r.clusters) {
		t.Errorf("%d roles and access entries for %d clusters", len(made), len(r.clusters))
	}
	for what, n := range made {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
}
