// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// fixture is a cluster with a node whose images contain the program tester.
type fixture struct {
	*testing.T
	*Kubelet
	cluster   *localhub.Instance
	bin       string
	namespace string
}

var (
	starting sync.Mutex
	shared   *fixture
)

func TestMain(m *testing.M) {
	AsRoot()
	code := m.Run()
	if shared != nil {
		shared.cluster.Kill()
		_ = os.RemoveAll(shared.bin)
	}
	os.Exit(code)
}

// newFixture returns the cluster that the tests share, with a kubelet and a namespace for this test.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	if shared == nil {
		dir, err := os.MkdirTemp("", "clusterhub-kubelet-")
		if err != nil {
			t.Fatal(err)
		}
		tester(t, dir)
		cluster, err := localhub.Start(t.Context(), localhub.Options{Dir: filepath.Join(dir, "cluster"), BinDir: binaries.Kubernetes(t, filepath.Join(dir, "bin")), Plain: true, UnsafeNoFsync: true})
		if err != nil {
			t.Fatal(err)
		}
		shared = &fixture{cluster: cluster, bin: dir}
	}
	f := &fixture{T: t, cluster: shared.cluster, bin: shared.bin}
	f.Kubelet = Start(t, Config{Cluster: f.cluster.AdminConfig(), BinDir: f.bin})
	made, err := f.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.namespace = made.Name
	t.Cleanup(func() {
		// The next test's kubelet must not run these pods.
		ctx := context.WithoutCancel(t.Context())
		_ = f.client.CoreV1().Namespaces().Delete(ctx, f.namespace, metav1.DeleteOptions{})
		_ = f.client.CoreV1().Pods(f.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
	})
	f.eventually("the namespace has what pods need", func(ctx context.Context) error {
		_, err := f.client.CoreV1().ServiceAccounts(f.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return f
}

// tester builds the program of the pods.
func tester(t *testing.T, dir string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "tester"), "./testdata/tester")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (f *fixture) eventually(what string, ok func(context.Context) error) {
	f.Helper()
	var last error
	err := await.Until(f.Context(), await.Limit, func(ctx context.Context) (bool, error) {
		last = ok(ctx)
		return last == nil, nil
	})
	if err != nil {
		f.Fatalf("%s: not after %s: %v", what, await.Limit, last)
	}
}

// create creates a pod from its spec, in YAML. It adds what the restricted namespace requires to each container.
func (f *fixture) create(name, spec string) {
	f.Helper()
	pod := f.podOf(name, spec)
	f.eventually("the pod "+name+" is made", func(ctx context.Context) error {
		_, err := f.client.CoreV1().Pods(f.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

func (f *fixture) podOf(name, spec string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		f.Fatal(err)
	}
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod.Spec.SecurityContext.RunAsNonRoot = new(true)
	pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
			if containers[i].Image == "" {
				containers[i].Image = "clusterhub/tester:v1"
			}
		}
	}
	return pod
}

// await waits until a condition of a pod holds.
func (f *fixture) await(name, what string, ok func(*corev1.Pod) bool) (pod *corev1.Pod) {
	f.Helper()
	f.eventually(name+" "+what, func(ctx context.Context) (err error) {
		pod, err = f.client.CoreV1().Pods(f.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) == 0 || !ok(pod) {
			status, _ := json.Marshal(pod.Status)
			return fmt.Errorf("%s", status)
		}
		return nil
	})
	return pod
}

func (f *fixture) gone(name string) {
	f.Helper()
	f.eventually(name+" is gone", func(ctx context.Context) error {
		pods, err := f.client.CoreV1().Pods(f.namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(pods.Items) > 0 {
			return fmt.Errorf("it is there: %+v", pods.Items[0].Status)
		}
		return err
	})
}

// ask sends a request to a pod that listens on port 8080.
func (f *fixture) ask(method, pod, path string, form ...string) (string, error) {
	query := url.Values{}
	for i := 0; i+1 < len(form); i += 2 {
		query.Set(form[i], form[i+1])
	}
	request, err := http.NewRequestWithContext(f.Context(), method, "http://pod"+path+"?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return f.Dial(ctx, f.namespace, pod, 8080)
	}}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func (f *fixture) mustAsk(method, pod, path string, form ...string) string {
	f.Helper()
	said, err := f.ask(method, pod, path, form...)
	if err != nil {
		f.Fatalf("%s %s: %v", method, path, err)
	}
	return said
}

func running(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func clientOf(t *testing.T, f *fixture, token string) kubernetes.Interface {
	t.Helper()
	config := f.cluster.AdminConfig()
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	config.CertFile, config.KeyFile = "", ""
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
