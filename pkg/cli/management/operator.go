// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// OperatorImageFlag is the name of the flag with the image of hub-operator.
	OperatorImageFlag = "operator-image"
	skipOperatorFlag  = "skip-operator"
	// OperatorName is the name of the Deployment of hub-operator, and of its image.
	OperatorName = "hub-operator"
	// ourImages is the prefix of the names of the images in the manifests, and noVersion is their tag.
	ourImages, noVersion = "clusterhub/", ":v0.0.0"
)

// OperatorFlags define the hub-operator that must run on the management cluster.
type OperatorFlags struct {
	// Image is the image to install, or "" if it is not known.
	Image string
	skip  bool
	// PullConfig are credentials for its image. They may be empty.
	PullConfig []byte
}

// AddTo adds the flags. The version of this program is that of the default image.
func (o *OperatorFlags) AddTo(fs *pflag.FlagSet, version string) {
	fs.StringVar(&o.Image, OperatorImageFlag, kit.ImageOf(ourImages+OperatorName, version),
		"Image of hub-operator, for a management cluster that does not have it, or has an older version that kubectl hub installed. What it deploys "+
			"uses images of the same registry and tag.")
	fs.BoolVar(&o.skip, skipOperatorFlag, false, "Do not install or change hub-operator on the management cluster.")
}

// Validate rejects an image that cannot be the name of one.
func (o *OperatorFlags) Validate() error {
	if strings.ContainsFunc(o.Image, unicode.IsSpace) {
		return fmt.Errorf("--%s must be the name of an image, not %q", OperatorImageFlag, o.Image)
	}
	return nil
}

// Objects returns the objects of hub-operator, or nil if it must not be installed.
func (o *OperatorFlags) Objects() ([]*unstructured.Unstructured, error) {
	if o.skip {
		return nil, nil
	}
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		return nil, err
	}
	if o.Image != "" {
		for _, object := range objects {
			object.Object = withImages(object.Object, o.Image).(map[string]any)
		}
	}
	return withPullSecret(o, objects)
}

// withImages replaces the registry and the tag of all our images in a manifest by those of one image, also in flags.
func withImages(value any, image string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withImages(v[key], image)
		}
	case []any:
		for i := range v {
			v[i] = withImages(v[i], image)
		}
	case string:
		flag, name, found := strings.Cut(v, ourImages)
		name, ours := strings.CutSuffix(name, noVersion)
		switch {
		case !found || !ours || flag != "" && (!strings.HasPrefix(flag, "--") || !strings.HasSuffix(flag, "=")):
		case name == OperatorName:
			return flag + image
		default:
			return flag + otherImage(image, name)
		}
	}
	return value
}

// otherImage returns another image of the same release.
func otherImage(operator, name string) string {
	repository, tag := operator, tagOf(operator)
	if at := strings.LastIndex(repository, "/"); at >= 0 {
		return repository[:at+1] + name + ":" + tag
	}
	return name + ":" + tag
}

// NeedImage returns an error if hub-operator must be installed and its image is not known.
func (o *OperatorFlags) NeedImage(version string) error {
	if o.Image == "" && !o.skip {
		return fmt.Errorf("--%s must be set to an image of hub-operator, or --%s if it already runs: there is no default for version %s of this program",
			OperatorImageFlag, skipOperatorFlag, version)
	}
	return nil
}

// operatorKey returns the name of the Deployment of hub-operator.
func operatorKey(objects []*unstructured.Unstructured) (client.ObjectKey, error) {
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == OperatorName {
			return client.ObjectKeyFromObject(o), nil
		}
	}
	return client.ObjectKey{}, errors.New("the manifests of hub-operator have no Deployment " + OperatorName)
}

// OperatorPlan has the changes that are necessary so that hub-operator runs.
type OperatorPlan struct {
	// objects are the objects to apply, in order; nil if it is already installed. have are the existing ones.
	objects []*unstructured.Unstructured
	have    []client.Object
}

// PlanOperator reads hub-operator, and changes nothing. The Deployment is created last: if it exists, everything does.
func (m *Client) PlanOperator(ctx context.Context, o *OperatorFlags) (*OperatorPlan, error) {
	plan := &OperatorPlan{}
	objects, err := o.Objects()
	if err != nil || len(objects) == 0 {
		return plan, err
	}
	key, err := operatorKey(objects)
	if err != nil {
		return nil, err
	}
	have := &appsv1.Deployment{}
	err = m.Get(ctx, key, have)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("getting hub-operator on the management cluster: %w", m.Explain(err))
	default:
		now := imageIn(have)
		if now == o.Image || !isOlder(now, o.Image) {
			return plan, nil
		}
		if !kit.Owner.Owns(have) {
			m.Warn("hub-operator on the management cluster is %s, which is older than %s. kubectl hub did not install it, and does not change it: update it the way it was installed", now, o.Image)
			return plan, nil
		}
	}
	if err := o.NeedImage(m.Version); err != nil {
		return nil, err
	}
	plan.objects, plan.have = objects, make([]client.Object, len(objects))
	for i, object := range objects {
		plan.have[i], err = m.Objects.Observe(ctx, object)
		if err != nil {
			return nil, m.explainOperator(err)
		}
	}
	return plan, m.tryOperator(ctx, objects)
}

// explainOperator explains a conflict with another project's operator. It returns other errors unchanged.
func (m *Client) explainOperator(err error) error {
	if theirs := (*remote.NotOurs)(nil); errors.As(err, &theirs) && theirs.Object.GroupKind == kit.CRDKind {
		return fmt.Errorf("the management cluster has the %s, which kubectl hub did not create. If hub-operator or hub-controller-manager manages it, add --%s. "+
			"If Open Cluster Management's operator does, use another management cluster, or remove that operator first: both would change the same objects",
			theirs.Object, skipOperatorFlag)
	}
	return m.Explain(err)
}

// tryOperator checks, before anything is created, whether the user may create hub-operator and grant its permissions.
func (m *Client) tryOperator(ctx context.Context, objects []*unstructured.Unstructured) error {
	var rights []authorizationv1.ResourceAttributes
	for _, o := range objects {
		mapping, err := m.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("the management cluster does not serve %s: %w", o.GroupVersionKind(), m.Explain(err))
		}
		for _, verb := range []string{"create", "patch"} {
			right := authorizationv1.ResourceAttributes{Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Namespace: o.GetNamespace()}
			if !slices.Contains(rights, right) {
				rights = append(rights, right)
			}
		}
	}
	if err := m.CheckRights(ctx, rights, "install hub-operator", "have an admin of it run this command, or install hub-operator, and add --"+skipOperatorFlag); err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		try := o.DeepCopy()
		try.SetName("")
		try.SetGenerateName(o.GetName() + "-")
		if err := m.Create(ctx, try, client.DryRunAll, kit.FieldOwner); kit.IsEscalation(err) {
			return fmt.Errorf("this user may not grant hub-operator the rights of %s: users can only grant rights that they have. "+
				"Have an admin of the management cluster install hub-operator", remote.IDOf(o))
		} else if err != nil {
			return fmt.Errorf("checking by a dry run whether %s can be created: %w", remote.IDOf(o), m.Explain(err))
		}
	}
	return nil
}

// CheckRights returns an error if the user lacks permissions to complete the operation.
func (m *Client) CheckRights(ctx context.Context, rights []authorizationv1.ResourceAttributes, what, next string) error {
	kube, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		return err
	}
	missing, err := kit.MissingRight(ctx, kube, rights)
	switch {
	case err != nil:
		return fmt.Errorf("checking what this user may do on the management cluster: %w", m.Explain(err))
	case missing != "":
		return fmt.Errorf("this user may not %s on the management cluster %s, which is needed to %s: %s", missing, m.Config.Host, what, next)
	}
	return nil
}

// InstallOperator creates hub-operator, and waits until its kinds are served. Later steps show whether its pod runs.
func (m *Client) InstallOperator(ctx context.Context, plan *OperatorPlan, kind string, list client.ObjectList) error {
	for i, o := range plan.objects {
		if err := m.Objects.Apply(ctx, o, plan.have[i]); err != nil {
			return fmt.Errorf("creating %s: %w", remote.IDOf(o), m.explainOperator(err))
		}
		if plan.have[i] == nil {
			_, _ = fmt.Fprintln(m.ErrOut, kit.Created(o))
		}
	}
	return m.Await(ctx, "the management cluster to serve "+kind+"s", func(ctx context.Context) (bool, string, error) {
		err := m.List(ctx, list, client.Limit(1))
		switch {
		case err == nil:
			return true, "", nil
		case !meta.IsNoMatchError(err) && !isNotServed(err):
			return false, "", m.Explain(err)
		case len(plan.objects) == 0:
			return false, "", fmt.Errorf("the management cluster does not serve %ss: install hub-operator there, or omit --%s", kind, skipOperatorFlag)
		}
		return false, "its CustomResourceDefinition is not established", nil
	})
}

// isNotServed reports whether a server does not know the path of a list.
func isNotServed(err error) bool {
	return apierrors.IsNotFound(err)
}

// OperatorState returns what prevents hub-operator from running, or "".
func (m *Client) OperatorState(ctx context.Context) (string, error) {
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		return "", err
	}
	key, err := operatorKey(objects)
	if err != nil {
		return "", err
	}
	state, err := m.DeploymentState(ctx, key) // it may run elsewhere
	return kit.Prefixed("hub-operator does not run: ", state), err
}

// imageIn returns the image of the first container.
func imageIn(deployment *appsv1.Deployment) string {
	if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Image
	}
	return ""
}

// isOlder reports whether one image certainly has an older version than another.
func isOlder(have, want string) bool {
	a, errA := version.ParseSemantic(tagOf(have))
	b, errB := version.ParseSemantic(tagOf(want))
	return errA == nil && errB == nil && a.LessThan(b)
}

func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	return cmp.Or(tag, "latest")
}

// withPullSecret adds the credentials for the image of hub-operator to its objects.
func withPullSecret(o *OperatorFlags, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if len(o.PullConfig) == 0 {
		return objects, nil
	}
	for i, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		if err := (deploy.AgentPod{PullSecrets: []string{deploy.PullSecretName}}).Fill(object); err != nil {
			return nil, err
		}
		return slices.Insert(objects, i, deploy.PullSecret(object.GetNamespace(), o.PullConfig)), nil
	}
	return objects, nil
}
