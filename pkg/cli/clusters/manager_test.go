// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

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
		"an ARN of another partition":          {arn: chinese, manager: clitest.RunsWith("--registration-drivers=awsirsa", "--hub-cluster-arn", clitest.HubARN), refused: "IAM allows no trust in another partition"},
		"an ARN, and nothing known of the hub": {arn: clitest.ManagedARN},
		"an ARN, on a hub by certificates": {arn: clitest.ManagedARN, manager: clitest.RunsWith(),
			warned: "managed cluster c1: it registers by awsirsa, but hub-controller-manager runs with --registration-drivers=csr: it gets no identity until that includes awsirsa"},
		"an ARN, on a hub that is not shown":     {arn: clitest.ManagedARN, manager: clitest.RunsWith(), hidden: true},
		"an ARN, on a hub by either":             {arn: clitest.ManagedARN, manager: clitest.RunsWith("--registration-drivers", "awsirsa,csr", "--hub-cluster-arn="+clitest.HubARN)},
		"an ARN, on a hub that is told twice":    {arn: clitest.ManagedARN, manager: clitest.RunsWith("--registration-drivers=csr", "--registration-drivers=awsirsa")},
		"an ARN, on a hub with another's driver": {arn: clitest.ManagedARN, manager: clitest.RunsWith("--registration-drivers=passport,csr")},
		"an ARN, on a hub that registers none":   {arn: clitest.ManagedARN, manager: clitest.RunsWith("--registration-drivers=")},
		"a certificate, on a hub by AWS IAM":     {manager: clitest.RunsWith("--registration-drivers=awsirsa"), warned: "it registers by csr"},
		"a certificate":                          {manager: clitest.RunsWith()},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clitest.NewCluster("c1", nil)
			if test.arn != "" {
				annotation := registration.AnnotationManagedClusterARN
				if test.annotation != "" {
					annotation = test.annotation
				}
				cluster.Annotations = map[string]string{annotation: test.arn}
			}
			s := clitest.NewServer(t, cluster)
			if test.manager != nil {
				s.Put(test.manager)
			}
			if test.hidden {
				s.Refuse("GET "+clitest.ManagerPath, clitest.Forbidden("deployments", "get"))
			}
			_, stderr, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "accept", "--clusters", "c1")
			if test.refused != "" {
				if err == nil {
					t.Fatal("it is accepted")
				}
				clitest.Says(t, err.Error(), test.refused)
				s.WantUnchanged()
				return
			}
			if err != nil || (test.warned == "") != (stderr == "") || !strings.Contains(stderr, test.warned) {
				t.Errorf("%v: %q, want %q", err, stderr, test.warned)
			}
			if accepted, _, _ := nestedBool(s, clitest.ClustersPath+"/c1"); !accepted {
				t.Error("it is not accepted")
			}
		})
	}
}

func TestInit_PrintsRegistrationConfiguration(t *testing.T) {
	const role = `"arn:aws:iam::123456789012:role/hub_managed-cluster-identity-creator"`
	aws, either := []string{"--registration-auth=awsirsa", "--hub-cluster-arn=" + clitest.HubARN}, []string{"--registration-auth=csr,awsirsa", "--hub-cluster-arn=" + clitest.HubARN}
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
		"by certificate, as the hub does":             {manager: clitest.RunsWith()},
		"by certificate, where the hub does not":      {manager: clitest.RunsWith("--registration-drivers=awsirsa"), drivers: "csr,awsirsa"},
		"by AWS IAM, and nothing known of the hub":    {args: aws, drivers: "awsirsa"},
		"by AWS IAM, on a hub that was told nothing":  {args: aws, manager: clitest.RunsWith(), drivers: "awsirsa", changed: true},
		"by AWS IAM, on a hub with drivers":           {args: aws, manager: clitest.RunsWith("--registration-drivers=passport,csr"), drivers: "awsirsa,passport,csr", changed: true},
		"by AWS IAM, as the hub does":                 {args: aws, manager: clitest.RunsWith("--registration-drivers=awsirsa", "--hub-cluster-arn="+clitest.HubARN)},
		"by AWS IAM, on a hub that has another's ARN": {args: aws, manager: clitest.RunsWith("--registration-drivers=awsirsa", "--hub-cluster-arn="+clitest.ManagedARN), drivers: "awsirsa"},
		"by AWS IAM, as a platform team demands":      {args: append(aws, demanded...), drivers: "awsirsa", roles: demanded, joins: demanded[:1]},
		"by AWS IAM, as the hub does, with a path and a boundary": {args: aws, manager: clitest.RunsWith(append(demanded, "--registration-drivers=awsirsa", "--hub-cluster-arn="+clitest.HubARN)...),
			joins: demanded[:1]},
		"by AWS IAM, on a hub without a path": {args: append(aws, demanded[0]), manager: clitest.RunsWith("--registration-drivers=awsirsa", "--hub-cluster-arn="+clitest.HubARN),
			drivers: "awsirsa", roles: demanded[:1], joins: demanded[:1]},
		"by AWS IAM, on a hub with another boundary": {args: append(aws, demanded[1]), manager: clitest.RunsWith(demanded[0], "--registration-drivers=awsirsa", "--hub-cluster-arn="+clitest.HubARN,
			"--hub-role-permissions-boundary=arn:aws:iam::aws:policy/Other"), drivers: "awsirsa", roles: demanded, joins: demanded[:1]},
		"by either":                           {args: either, drivers: "awsirsa,csr"},
		"by either, on a hub by certificates": {args: either, manager: clitest.RunsWith("--registration-drivers=csr"), drivers: "awsirsa,csr", changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := clitest.NewPrepared(t)
			if test.manager != nil {
				s.Put(test.manager)
				s.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ManagerNamespace, Name: deploy.Manager}})
			}
			stdout, stderr, err := clitest.Run(t, config, append([]string{"init", "--hub-apiserver=https://hub.example.com"}, test.args...)...)
			if err != nil || strings.Contains(stderr, "kustomization") != (test.drivers != "") {
				t.Fatalf("%v: %s", err, stderr)
			}
			clitest.Says(t, stdout, "kubectl hub join")
			for _, flag := range test.joins {
				clitest.Says(t, stdout, strings.Replace(flag, "=", " ", 1))
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
			clitest.Says(t, stderr, "hub-controller-manager"+verb+"--registration-drivers="+test.drivers, "kind: Kustomization\n",
				`value: "--registration-drivers=`+test.drivers+`"}`)
			for _, flag := range test.roles {
				clitest.Says(t, stderr, `value: "`+flag+`"}`)
			}
			if len(test.roles) > 0 {
				clitest.Says(t, stderr, "kubectl hub iam-role --hub-cluster-arn "+clitest.HubARN+" "+strings.Join(test.roles, " ")+" --oidc-provider ISSUER")
			}
			if hasRole := strings.Contains(stderr, role) && strings.Contains(stderr, "kubectl hub iam-role --hub-cluster-arn "+clitest.HubARN); hasRole != (len(test.args) > 0) {
				t.Errorf("it says %s", stderr)
			}
		})
	}
}

func TestInit_WarnsOfPath(t *testing.T) {
	_, config := clitest.NewPrepared(t)
	for path, warns := range map[string]bool{"/": false, "/a/": true} {
		_, stderr, err := clitest.Run(t, config, "init", "--upstream-agents", "--registration-auth=awsirsa", "--hub-cluster-arn="+clitest.HubARN, "--hub-role-path="+path)
		if err != nil || strings.Contains(stderr, "Open Cluster Management's agents expect their roles at the path /") != warns {
			t.Errorf("%s: %v: %s", path, err, stderr)
		}
	}
}

func nestedBool(s *clitest.Server, path string) (bool, bool, error) {
	return unstructured.NestedBool(s.Get(path).Object, "spec", "hubAcceptsClient")
}
