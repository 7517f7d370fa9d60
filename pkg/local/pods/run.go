// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/local/image"
	"github.com/clusterhub/clusterhub/pkg/local/pods/volume"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// run is a pod with its process.
type run struct {
	pod     *corev1.Pod
	dir     string
	process localserver.Process
	// written is the current content of the volumes.
	written map[string]map[string]volume.File
	token   *volume.Token

	port     int
	started  time.Time // zero if it does not run
	restarts int32
	backoff  localserver.Backoff
	ready    bool
	// waiting is the reason why it does not run.
	waiting corev1.ContainerStateWaiting
	// ended is closed when the process has exited for good. It is nil until it must stop.
	ended chan struct{}
}

func processIn(dir, program, log string) localserver.Process {
	return localserver.Process{Dir: dir, Name: program, LogFile: log, Tied: true, SharesSession: true}
}

func (n *node) newRun(pod *corev1.Pod) *run {
	dir := filepath.Join(n.Dir, string(pod.UID))
	r := &run{pod: pod, dir: dir, written: map[string]map[string]volume.File{},
		process: processIn(dir, programOf(pod.Spec.Containers[0].Image), filepath.Join(n.LogDir, pod.Namespace+"_"+pod.Name+".log")),
		waiting: corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for _, c := range pod.Status.ContainerStatuses { // of a previous process of this node
		r.restarts = c.RestartCount
		if c.State.Running != nil {
			r.restarts++
		}
	}
	return r
}

// syncProcess reconciles the process of a pod, with the current files.
func (n *node) syncProcess(ctx context.Context, r *run) error {
	if r.ended != nil {
		return nil
	}
	if err := n.prepare(ctx, r); err != nil {
		if r.started.IsZero() {
			r.waiting = corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}
			return nil // the status reports it
		}
		return err // existing files are not changed
	}
	running, err := r.process.Running()
	if err != nil {
		return err
	}
	if running {
		r.ready = r.isReady(ctx)
		return nil
	}
	if !r.started.IsZero() {
		r.plan()
	}
	if time.Now().Before(r.backoff.NotBefore) {
		return nil
	}
	return n.start(r)
}

// plan sets when a process that has exited is restarted.
func (r *run) plan() {
	r.backoff.Ended(r.started, time.Now())
	r.restarts++
	r.started, r.ready = time.Time{}, false
	r.waiting = corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: r.process.Ended().Error()}
}

func (n *node) start(r *run) error {
	bin, err := n.program(r.process.Name)
	if err != nil {
		r.waiting = corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: err.Error()}
		return nil
	}
	free, port, err := localserver.Listen()
	if err != nil {
		return err
	}
	if err := free.Close(); err != nil {
		return err
	}
	r.port = port
	args := argsOf(r.pod, r.volume, localserver.Address(port), filepath.Join(r.identity(), "kubeconfig"))
	if n.ImagesDir != "" {
		in := image.Image{Root: filepath.Join(n.ImagesDir, r.process.Name), At: filepath.Join(r.dir, "root"), Dir: r.dir, Tied: r.process.Tied}
		args, r.process.OwnMounts = append(in.Args(), args...), true
	}
	if err := r.process.Start(bin, args); err != nil {
		return err
	}
	r.started = time.Now()
	return nil
}

// program returns the file to execute for a program.
func (n *node) program(name string) (string, error) {
	if n.ImagesDir != "" {
		return filepath.Join(n.BinDir, image.Binary), image.Check(n.ImagesDir, name)
	}
	bin := filepath.Join(n.BinDir, name)
	if _, err := os.Stat(bin); err != nil {
		return "", fmt.Errorf("%s is missing: build it with `make build`", bin)
	}
	return bin, nil
}

func (r *run) volume(name string) string { return filepath.Join(r.dir, "volumes", name) }

// identity returns the folder with the pod's credentials for its own cluster.
func (r *run) identity() string { return filepath.Join(r.dir, "identity") }

// prepare updates the files of a pod.
func (n *node) prepare(ctx context.Context, r *run) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, v := range r.pod.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		files := map[string]volume.File{}
		data, err := map[string][]byte(nil), error(nil)
		if secret, e := n.secrets.Secrets(r.pod.Namespace).Get(v.Secret.SecretName); e == nil {
			data = secret.Data
		} else {
			err = e
		}
		if err = volume.AddKeys(files, data, v.Secret.Items, v.Secret.Optional, v.Secret.DefaultMode, err); err == nil {
			err = r.write(r.volume(v.Name), files)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("writing the volume %q: %w", v.Name, err))
		}
	}
	if hasToken(r.pod) {
		errs = append(errs, n.identify(ctx, r))
	}
	return errors.Join(errs...)
}

// write replaces the files of a folder, if they have changed.
func (r *run) write(dir string, files map[string]volume.File) error {
	if before, ok := r.written[dir]; ok && maps.Equal(before, files) {
		return nil
	}
	// Only this user may read them, whatever the pod specifies.
	if err := volume.Write(dir, files, func(name string, _ volume.File) error { return os.Chmod(name, 0o600) }); err != nil {
		return err
	}
	r.written[dir] = files
	return nil
}

// identify gives the pod a kubeconfig of its own cluster, with a token of its ServiceAccount.
func (n *node) identify(ctx context.Context, r *run) error {
	if r.token == nil || r.token.Due(time.Now()) {
		// With the lifetime that the volume of a pod requests.
		token, err := volume.RequestToken(ctx, n.client, r.pod, &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607))})
		if err != nil {
			return fmt.Errorf("requesting a token of the ServiceAccount %s: %w", r.pod.Spec.ServiceAccountName, err)
		}
		r.token = token
	}
	kubeconfig, err := kubeconfigOf(n.Cluster)
	if err != nil {
		return err
	}
	return r.write(r.identity(), map[string]volume.File{"kubeconfig": {Data: string(kubeconfig)}, "token": {Data: r.token.Value}})
}

// kubeconfigOf returns a kubeconfig of the cluster with the token in a file beside it.
func kubeconfigOf(cluster *rest.Config) ([]byte, error) {
	cluster = rest.CopyConfig(cluster)
	if err := rest.LoadTLSFiles(cluster); err != nil {
		return nil, err
	}
	const name = "cluster"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cluster.Host, CertificateAuthorityData: cluster.CAData, TLSServerName: cluster.ServerName}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {TokenFile: "token"}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

// isReady executes the readiness probe.
func (r *run) isReady(ctx context.Context) bool {
	probe := r.pod.Spec.Containers[0].ReadinessProbe
	if probe == nil || probe.HTTPGet == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+localserver.Address(r.port)+probe.HTTPGet.Path, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
