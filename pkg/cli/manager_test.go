// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const managerPath = "/apis/apps/v1/namespaces/clusterhub-system/deployments/hub-controller-manager"

// runsWith returns a Deployment of hub-controller-manager with these flags.
func runsWith(flags ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ManagerNamespace, Name: deploy.Manager}}
	d.Spec.Template.Spec.ServiceAccountName = deploy.Manager
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar", Args: []string{"--registration-drivers=x"}},
		{Name: deploy.Manager, Args: append([]string{"--leader-elect-namespace=a", "--controllers=sets"}, flags...)}}
	return d
}

// TestAccept_ChecksRegistrationDriver verifies that accept rejects what no hub can accept, and warns about what this hub does not
// handle, before anything is changed.
func TestAccept_ChecksRegistrationDriver(t *testing.T) {
	const chinese = "arn:aws-cn:eks:cn-north-1:210987654321:cluster/c1"
	for name, test := range map[string]struct {
		arn, annotation string
		manager         *appsv1.Deployment
		hidden          bool
		refused, warned string
	}{
		"no ARN":                               {arn: "c1", refused: `managed cluster c1 cannot register by AWS IAM: "c1" is not the ARN of an EKS cluster`},
		"an ARN of a role":                     {arn: "arn:aws:iam::210987654321:role/c1", refused: `its service is "iam"`},
		"no ARN, as the specification says it": {arn: "c1\x1b[2J", annotation: registration.AnnotationManagedClusterARNOfSeed, refused: `\x1b[2J`},
		"an ARN of another partition":          {arn: chinese, manager: runsWith("--registration-drivers=awsirsa", "--hub-cluster-arn", hubARN), refused: "IAM allows no trust in another partition"},
		"an ARN, and nothing known of the hub": {arn: managedARN},
		"an ARN, on a hub by certificates": {arn: managedARN, manager: runsWith(),
			warned: "managed cluster c1: it registers by awsirsa, but hub-controller-manager runs with --registration-drivers=csr: it gets no identity until that includes awsirsa"},
		"an ARN, on a hub that is not shown":     {arn: managedARN, manager: runsWith(), hidden: true},
		"an ARN, on a hub by either":             {arn: managedARN, manager: runsWith("--registration-drivers", "awsirsa,csr", "--hub-cluster-arn="+hubARN)},
		"an ARN, on a hub that is told twice":    {arn: managedARN, manager: runsWith("--registration-drivers=csr", "--registration-drivers=awsirsa")},
		"an ARN, on a hub with another's driver": {arn: managedARN, manager: runsWith("--registration-drivers=passport,csr")},
		"an ARN, on a hub that registers none":   {arn: managedARN, manager: runsWith("--registration-drivers=")},
		"a certificate, on a hub by AWS IAM":     {manager: runsWith("--registration-drivers=awsirsa"), warned: "it registers by csr"},
		"a certificate":                          {manager: runsWith()},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster("c1", nil)
			if test.arn != "" {
				annotation := registration.AnnotationManagedClusterARN
				if test.annotation != "" {
					annotation = test.annotation
				}
				cluster.Annotations = map[string]string{annotation: test.arn}
			}
			s := newServer(t, cluster)
			if test.manager != nil {
				s.put(test.manager)
			}
			if test.hidden {
				s.refuse("GET "+managerPath, forbidden("deployments", "get"))
			}
			_, stderr, err := run(t, kubeconfig(t, map[string]*fakeServer{"hub": s}), "accept", "--clusters", "c1")
			if test.refused != "" {
				if err == nil {
					t.Fatal("it is accepted")
				}
				says(t, err.Error(), test.refused)
				s.wantUnchanged()
				return
			}
			if err != nil || (test.warned == "") != (stderr == "") || !strings.Contains(stderr, test.warned) {
				t.Errorf("%v: %q, want %q", err, stderr, test.warned)
			}
			if accepted, _, _ := nestedBool(s, clustersPath+"/c1"); !accepted {
				t.Error("it is not accepted")
			}
		})
	}
}

func TestInit_PrintsRegistrationConfiguration(t *testing.T) {
	const role = `"arn:aws:iam::123456789012:role/hub_managed-cluster-identity-creator"`
	aws, either := []string{"--registration-auth=awsirsa", "--hub-cluster-arn=" + hubARN}, []string{"--registration-auth=csr,awsirsa", "--hub-cluster-arn=" + hubARN}
	demanded := []string{"--hub-role-path=/a/", "--hub-role-permissions-boundary=arn:aws:iam::123456789012:policy/limits"}
	for name, test := range map[string]struct {
		args    []string
		manager *appsv1.Deployment
		// drivers are the drivers that init prints as missing, or "".
		drivers string
		// roles are the printed flags for the creation of roles, and joins the flags in the printed join command.
		roles, joins []string
		// changed reports whether the Deployment is changed.
		changed bool
	}{
		"by certificate":                              {},
		"by certificate, as the hub does":             {manager: runsWith()},
		"by certificate, where the hub does not":      {manager: runsWith("--registration-drivers=awsirsa"), drivers: "csr,awsirsa"},
		"by AWS IAM, and nothing known of the hub":    {args: aws, drivers: "awsirsa"},
		"by AWS IAM, on a hub that was told nothing":  {args: aws, manager: runsWith(), drivers: "awsirsa", changed: true},
		"by AWS IAM, on a hub with drivers":           {args: aws, manager: runsWith("--registration-drivers=passport,csr"), drivers: "awsirsa,passport,csr", changed: true},
		"by AWS IAM, as the hub does":                 {args: aws, manager: runsWith("--registration-drivers=awsirsa", "--hub-cluster-arn="+hubARN)},
		"by AWS IAM, on a hub that has another's ARN": {args: aws, manager: runsWith("--registration-drivers=awsirsa", "--hub-cluster-arn="+managedARN), drivers: "awsirsa"},
		"by AWS IAM, as a platform team demands":      {args: append(aws, demanded...), drivers: "awsirsa", roles: demanded, joins: demanded[:1]},
		"by AWS IAM, as the hub does, with a path and a boundary": {args: aws, manager: runsWith(append(demanded, "--registration-drivers=awsirsa", "--hub-cluster-arn="+hubARN)...),
			joins: demanded[:1]},
		"by AWS IAM, on a hub without a path": {args: append(aws, demanded[0]), manager: runsWith("--registration-drivers=awsirsa", "--hub-cluster-arn="+hubARN),
			drivers: "awsirsa", roles: demanded[:1], joins: demanded[:1]},
		"by AWS IAM, on a hub with another boundary": {args: append(aws, demanded[1]), manager: runsWith(demanded[0], "--registration-drivers=awsirsa", "--hub-cluster-arn="+hubARN,
			"--hub-role-permissions-boundary=arn:aws:iam::aws:policy/Other"), drivers: "awsirsa", roles: demanded, joins: demanded[:1]},
		"by either":                           {args: either, drivers: "awsirsa,csr"},
		"by either, on a hub by certificates": {args: either, manager: runsWith("--registration-drivers=csr"), drivers: "awsirsa,csr", changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := newPrepared(t)
			if test.manager != nil {
				s.put(test.manager)
				s.put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ManagerNamespace, Name: deploy.Manager}})
			}
			stdout, stderr, err := run(t, config, append([]string{"init", "--hub-apiserver=https://hub.example.com"}, test.args...)...)
			if err != nil || strings.Contains(stderr, "kustomization") != (test.drivers != "") {
				t.Fatalf("%v: %s", err, stderr)
			}
			says(t, stdout, "kubectl hub join")
			for _, flag := range test.joins {
				says(t, stdout, strings.Replace(flag, "=", " ", 1))
			}
			if len(test.joins) == 0 && strings.Contains(stdout, "--hub-role-path") {
				t.Errorf("it says %s", stdout)
			}
			if test.drivers == "" {
				return
			}
			verb := " must run with "
			if test.changed {
				verb = " now runs with "
			}
			says(t, stderr, "hub-controller-manager"+verb+"--registration-drivers="+test.drivers, "kind: Kustomization\n",
				`value: "--registration-drivers=`+test.drivers+`"}`)
			for _, flag := range test.roles {
				says(t, stderr, `value: "`+flag+`"}`)
			}
			if len(test.roles) > 0 {
				says(t, stderr, "kubectl hub iam-role --hub-cluster-arn "+hubARN+" "+strings.Join(test.roles, " ")+" --oidc-provider ISSUER")
			}
			if hasRole := strings.Contains(stderr, role) && strings.Contains(stderr, "kubectl hub iam-role --hub-cluster-arn "+hubARN); hasRole != (len(test.args) > 0) {
				t.Errorf("it says %s", stderr)
			}
		})
	}
}

func TestInit_WarnsOfPath(t *testing.T) {
	_, config := newPrepared(t)
	for path, warns := range map[string]bool{"/": false, "/a/": true} {
		_, stderr, err := run(t, config, "init", "--upstream-agents", "--registration-auth=awsirsa", "--hub-cluster-arn="+hubARN, "--hub-role-path="+path)
		if err != nil || strings.Contains(stderr, "Open Cluster Management's agents expect their roles at the path /") != warns {
			t.Errorf("%s: %v: %s", path, err, stderr)
		}
	}
}

func nestedBool(s *fakeServer, path string) (bool, bool, error) {
	return unstructured.NestedBool(s.get(path).Object, "spec", "hubAcceptsClient")
}
