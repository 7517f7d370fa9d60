// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	dockerConfig = `{"auths":{"images.example.com":{"auth":"dXNlcjpodW50ZXIy"}}}`
	pullSecret   = clitest.AgentSecrets + deploy.PullSecretName
)

func fileWith(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestJoin_ImageAndPodOptions(t *testing.T) {
	inManifests := "requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 256Mi}"
	for name, test := range map[string]struct {
		args, secrets    []string
		image, resources string
	}{
		"none of them": {resources: inManifests},
		"a registry":   {args: []string{"--image-registry", "images.example.com:5000/mirror"}, image: "images.example.com:5000/mirror/clusterhub/hub-agent:v1.2.3", resources: inManifests},
		"Secrets":      {args: []string{"--image-pull-secrets", "b,a,b"}, secrets: []string{"a", "b"}, resources: inManifests},
		"credentials":  {args: []string{"--image-pull-credential-file", fileWith(t, dockerConfig)}, secrets: []string{deploy.PullSecretName}, resources: inManifests},
		"both": {args: []string{"--image-pull-credential-file", fileWith(t, dockerConfig), "--image-pull-secrets", "a"}, secrets: []string{"a", deploy.PullSecretName},
			resources: inManifests},
		"the default":                    {args: []string{"--resource-qos-class", "Default"}, resources: inManifests},
		"no resources":                   {args: []string{"--resource-qos-class", "BestEffort"}, resources: ""},
		"requests":                       {args: []string{"--resource-requests", "cpu=50m,memory=64Mi"}, resources: "requests: {cpu: 50m, memory: 64Mi}"},
		"limits":                         {args: []string{"--resource-limits", "memory=1Gi", "--resource-qos-class", "ResourceRequirement"}, resources: "limits: {memory: 1Gi}"},
		"a guaranteed":                   {args: []string{"--resource-requests", "cpu=1,memory=1Gi", "--resource-limits", "cpu=1,memory=1024Mi"}, resources: "requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1024Mi}"},
		"what nodes of one cluster have": {args: []string{"--resource-limits", "example.com/gpu=0"}, resources: "limits: {example.com/gpu: 0}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, cluster, config, args := newJoining(t)
			stdout, stderr, err := clitest.Run(t, config, append(args, test.args...)...)
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			deployment := &appsv1.Deployment{}
			cluster.As(clitest.DeploymentPath, deployment)
			pod := deployment.Spec.Template.Spec
			if want := test.image; want != "" && pod.Containers[0].Image != want {
				t.Errorf("the image is %s", pod.Containers[0].Image)
			}
			var secrets []string
			for _, s := range pod.ImagePullSecrets {
				secrets = append(secrets, s.Name)
			}
			if !slices.Equal(secrets, test.secrets) {
				t.Errorf("it is pulled by %q, want %q", secrets, test.secrets)
			}
			want := corev1.ResourceRequirements{}
			if err := yaml.UnmarshalStrict([]byte("{"+test.resources+"}"), &want); err != nil {
				t.Fatal(err)
			}
			if got := pod.Containers[0].Resources; !reflect.DeepEqual(got, want) {
				t.Errorf("the resources are %v, want %v", got, want)
			}
			if made := cluster.Get(pullSecret) != nil; made != slices.Contains(test.secrets, deploy.PullSecretName) {
				t.Errorf("there are credentials: %t", made)
			}
			if strings.Contains(stdout+stderr, "dXNlcjpodW50ZXIy") {
				t.Error("it prints the credentials")
			}
		})
	}
}

// TestJoin_DeletesImagePullCredentials verifies that credentials are deleted with the agent, and by a join without credentials, and that an
// object of another owner with their name stays.
func TestJoin_DeletesImagePullCredentials(t *testing.T) {
	_, cluster, config, args := newJoining(t)
	with := append(slices.Clone(args), "--image-pull-credential-file", fileWith(t, dockerConfig))
	join := func(args []string) {
		t.Helper()
		if _, stderr, err := clitest.Run(t, config, args...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
	}
	join(with)
	secret := &corev1.Secret{}
	cluster.As(pullSecret, secret)
	if secret.Type != corev1.SecretTypeDockerConfigJson || string(secret.Data[corev1.DockerConfigJsonKey]) != dockerConfig || secret.Labels[deploy.LabelManagedBy] != deploy.ManagedBy {
		t.Errorf("the credentials are %v", secret)
	}
	join(args)
	if cluster.Get(pullSecret) != nil {
		t.Error("a join without credentials leaves those of an earlier one")
	}
	join(with)
	cluster.Put(clitest.NewIdentity(t, "c1", "https://hub"))
	leavesBy(t, cluster, batchv1.JobStatus{Succeeded: 1})
	if _, stderr, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1"); err != nil || cluster.Get(pullSecret) != nil {
		t.Errorf("unjoin leaves the credentials: %v: %s", err, stderr)
	}

	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: deploy.PullSecretName}}
	cluster.Put(theirs)
	join(args)
	if cluster.Get(pullSecret) == nil {
		t.Error("a Secret of others is removed")
	}
	if _, _, err := clitest.Run(t, config, with...); err == nil || !strings.Contains(err.Error(), deploy.PullSecretName) {
		t.Errorf("a Secret of others is changed: %v", err)
	}
}

func TestJoin_RejectsInvalidPodOptions(t *testing.T) {
	_, cluster, config, args := newJoining(t)
	ca := fileWith(t, string(cluster.CA()))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a registry with a scheme":       {[]string{"--image-registry", "https://images.example.com"}, "--image-registry must be HOST[:PORT][/PATH]"},
		"a registry with a slash":        {[]string{"--image-registry", "images.example.com/"}, "--image-registry must be"},
		"a registry and an image":        {[]string{"--image-registry", "images.example.com", "--image", "x"}, "--image and --image-registry exclude each other"},
		"no such file":                   {[]string{"--image-pull-credential-file", "/nonexistent/x"}, "--image-pull-credential-file: stat /nonexistent/x"},
		"no credentials":                 {[]string{"--image-pull-credential-file", fileWith(t, `{"credsStore":"desktop","auths":{}}`)}, "has no credentials"},
		"no JSON":                        {[]string{"--image-pull-credential-file", fileWith(t, "hunter2")}, "has no credentials"},
		"a large file":                   {[]string{"--image-pull-credential-file", fileWith(t, strings.Repeat(" ", join.MaxCredentials+1))}, "but the limit of a Secret is"},
		"no name":                        {[]string{"--image-pull-secrets", "A"}, `"A" is not the name of a Secret`},
		"the name of what is made":       {[]string{"--image-pull-secrets", deploy.PullSecretName, "--image-pull-credential-file", fileWith(t, dockerConfig)}, "must not include " + deploy.PullSecretName},
		"another class":                  {[]string{"--resource-qos-class", "Guaranteed"}, `not "Guaranteed"`},
		"a class that says nothing":      {[]string{"--resource-qos-class", "ResourceRequirement"}, "--resource-requests or --resource-limits must be set"},
		"requests of the best effort":    {[]string{"--resource-qos-class", "BestEffort", "--resource-requests", "cpu=1"}, "are for --resource-qos-class=ResourceRequirement, not BestEffort"},
		"no quantity":                    {[]string{"--resource-requests", "cpu=much"}, `cpu must be a quantity, such as 500m or 64Mi, not "much"`},
		"less than nothing":              {[]string{"--resource-limits", "cpu=-1"}, "cpu must be a quantity"},
		"no resource":                    {[]string{"--resource-limits", "a/b/c=1"}, "is not the name of a resource"},
		"more than the limit":            {[]string{"--resource-requests", "cpu=2", "--resource-limits", "cpu=1500m"}, "--resource-requests: cpu=2 exceeds the limit 1500m"},
		"a proxy CA without a proxy":     {[]string{"--proxy-ca-file", ca}, "--proxy-ca-file is for --proxy-url"},
		"a proxy CA that is none":        {[]string{"--proxy-url", "https://proxy:3128", "--proxy-ca-file", fileWith(t, "x")}, "--proxy-ca-file has no PEM certificate"},
		"a proxy CA in place of the hub": {[]string{"--proxy-url", "https://proxy:3128", "--proxy-ca-file", ca, "--ca-data", ""}, "would be the only one that the agent trusts for the hub"},
	} {
		_, stderr, err := clitest.Run(t, config, append(slices.Clone(args), test.args...)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error()+stderr, "hunter2") {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	cluster.WantUnchanged()
}

// TestJoinDetached_PodOptions verifies that a join by hub-operator configures the pods in the same way, and that the image of hub-operator
// is pulled with the same credentials.
func TestJoinDetached_PodOptions(t *testing.T) {
	d := newInstalling(t)
	stdout, _, err := clitest.Run(t, d.config, append(slices.Clone(d.args), "-o", "yaml", "--image-registry", "images.example.com", "--image-pull-credential-file", fileWith(t, dockerConfig),
		"--image-pull-secrets", "a", "--resource-requests", "cpu=50m", "--resource-limits", "memory=1Gi")...)
	if err != nil {
		t.Fatal(err)
	}
	k, operator, secrets := &operatorv1.Klusterlet{}, &appsv1.Deployment{}, map[string]string{}
	for _, doc := range strings.Split(stdout, "---\n") {
		var of struct {
			Kind     string
			Metadata metav1.ObjectMeta
		}
		if err := yaml.Unmarshal([]byte(doc), &of); err != nil {
			t.Fatal(err)
		}
		switch into := map[string]any{"Klusterlet": k, "Deployment": operator}[of.Kind]; {
		case into != nil:
			if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
				t.Fatal(err)
			}
		case of.Kind == "Secret" && of.Metadata.Name == deploy.PullSecretName:
			secrets[of.Metadata.Namespace] = doc
		}
	}
	const image = "images.example.com/clusterhub/hub-agent:v1.2.3"
	if k.Spec.RegistrationImagePullSpec != image || k.Spec.WorkImagePullSpec != image || !slices.Equal(k.Spec.Clusterhub.ImagePullSecrets, []string{"a", deploy.PullSecretName}) {
		t.Errorf("the Klusterlet has %+v", k.Spec)
	}
	if r := k.Spec.ResourceRequirement; r == nil || r.Type != operatorv1.ResourceQosClassResourceRequirement || r.ResourceRequirements.Requests.Cpu().String() != "50m" ||
		r.ResourceRequirements.Limits.Memory().String() != "1Gi" {
		t.Errorf("the resources are %v", r)
	}
	pod := operator.Spec.Template.Spec
	if pod.Containers[0].Image != "images.example.com/clusterhub/hub-operator:v1.2.3" || len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != deploy.PullSecretName {
		t.Errorf("hub-operator has %s and %v", pod.Containers[0].Image, pod.ImagePullSecrets)
	}
	if len(secrets) != 2 || secrets[clitest.DetachedSpace] == "" || secrets["clusterhub-operator"] == "" {
		t.Errorf("there are credentials in %v", secrets)
	}
}
