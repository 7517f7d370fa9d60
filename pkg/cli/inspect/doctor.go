// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect has the commands that show the state of a hub or a cluster: doctor, tree and top.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// errorFound is the exit code if the doctor finds an error.
const errorFound = 2

type doctorOptions struct {
	*kit.Options
	managed   bool
	namespace string
	patience  time.Duration
	bundle    string
	show      string
	out       *kit.Format
}

// NewDoctorCommand returns the command doctor.
func NewDoctorCommand(opts *kit.Options) *cobra.Command {
	o := &doctorOptions{Options: opts, namespace: registration.AgentNamespace, patience: time.Hour, out: kit.NewFormat("text", "json", "yaml")}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with a hub, or with the agent of a managed cluster",
		Long: "doctor checks a hub or a managed cluster, and prints what is wrong: the cause, who must act, and commands to run. It changes nothing: " +
			"it reads objects with your rights, sends the hub a dry run, and on a managed cluster connects to the hub of the agent from this machine. It lists what you may not see.\n\n" +
			"The cluster is checked as a hub if it has APIServices of one, otherwise as a managed cluster if it has the namespace of an agent. --managed is for a hub that is " +
			"also managed, and for a cluster whose agent is missing.\n\n" +
			"The exit code is 0 if it found nothing or only warnings, 2 if it found an error, and 1 if it could not check.",
		Example: kit.Example(`
# A hub
kubectl hub doctor --context hub
# A managed cluster: why does its agent not reach the hub?
kubectl hub doctor --managed --context c1
# For a program; and for a bug report, without secrets
kubectl hub doctor -o json
kubectl hub doctor --bundle doctor.tar.gz
# What a hub should have: print one object of it
kubectl hub doctor --show clusterrole/clusterhub:hub-apiserver`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.managed, "managed", false, "Check the agent of a managed cluster, even if the cluster is a hub or has no agent.")
	fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "Namespace of the agent; with --show, that of the object.")
	fs.DurationVar(&o.patience, "patience", o.patience, "How long something may wait for a user, such as a cluster to be accepted, before it is a finding.")
	fs.StringVar(&o.bundle, "bundle", "", "File to write an archive to (.tar.gz), for a bug report: the findings, versions, and the objects that were read. "+
		"It has no Secrets, tokens, keys, annotations or values of environment variables. The file must not exist yet.")
	fs.StringVar(&o.show, "show", "", "Print an object, given as KIND/NAME, as artifacts/deploy has it, and check nothing.")
	o.out.AddTo(cmd)
	cmd.MarkFlagsMutuallyExclusive("show", "bundle")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context) error {
	if o.show != "" {
		return o.showObject()
	}
	if o.patience < 0 {
		return fmt.Errorf("--patience must be 0 or more, not %s", o.patience)
	}
	config, err := o.RESTConfig()
	if err != nil {
		return err
	}
	if config.Timeout == 0 || config.Timeout > answers.MaxRead {
		config.Timeout = answers.MaxRead
	}
	config.WarningHandler = nil // the findings say it
	r, err := answers.NewReader(ctx, config, o.bundle != "")
	if err != nil {
		return fmt.Errorf("the doctor cannot check the cluster: %w", kit.ExplainUnreachable(config.Host, err, "check --context and --kubeconfig"))
	}
	report, err := o.diagnose(ctx, r)
	if err != nil {
		return err
	}
	for i := range report.Findings {
		report.Findings[i].Fix = diagnosis.At(report.Findings[i].Fix, o.ContextFlags()...)
	}
	report.Unseen = append(report.Unseen, r.Unseen...)
	if err := o.printReport(report); err != nil {
		return err
	}
	if o.bundle != "" {
		if err := o.writeBundle(report, r); err != nil {
			return fmt.Errorf("--bundle: %w", err)
		}
		_, _ = fmt.Fprintf(o.ErrOut, "Wrote %s: review its contents before you share it\n", o.bundle)
	}
	if report.Worst() == diagnosis.Error {
		return &command.Exit{Code: errorFound}
	}
	return nil
}

// diagnose diagnoses the cluster as a hub or as a managed cluster.
func (o *doctorOptions) diagnose(ctx context.Context, r *answers.Reader) (*doctor.Report, error) {
	if o.managed {
		return o.diagnoseManaged(ctx, r)
	}
	switch isHub, err := r.IsHub(ctx); {
	case err != nil:
		return nil, err
	case isHub:
		return r.Hub(ctx, answers.HubOptions{Patience: o.patience, Version: o.Version, DryRun: true})
	}
	if _, err := r.Get(ctx, answers.GVR("", "v1", "namespaces"), "", o.namespace); err == nil {
		return o.diagnoseManaged(ctx, r)
	} else if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%s is not a hub, and this user may not see whether it has the namespace %s of an agent: set --managed if it is a managed cluster", r.Config.Host, o.namespace)
	}
	return nil, fmt.Errorf("%s is neither a hub (it has no APIService of ours) nor a managed cluster (it has no namespace %s): choose another --context, or set --managed if an "+
		"agent should run there, and -n if its namespace is another one", r.Config.Host, o.namespace)
}

// deployed returns all objects of artifacts/deploy that --show can print.
func (o *doctorOptions) deployed() (all []*unstructured.Unstructured, err error) {
	objects, err := deploy.Hub{}.Objects()
	if err != nil {
		return nil, err
	}
	agent, err := deploy.Agent{Namespace: o.agentNamespace()}.Objects()
	if err != nil {
		return nil, err
	}
	return append(objects, agent...), nil
}

// agentNamespace returns the namespace for the agent's manifests: "" for the default one.
func (o *doctorOptions) agentNamespace() string {
	if o.namespace == registration.AgentNamespace {
		return ""
	}
	return o.namespace
}

func (o *doctorOptions) showObject() error {
	kind, name, ok := strings.Cut(o.show, "/")
	if !ok || name == "" {
		return fmt.Errorf("--show must be KIND/NAME, such as clusterrole/clusterhub:hub-apiserver, not %q", o.show)
	}
	hub, err := deploy.Hub{}.Objects()
	if err != nil {
		return err
	}
	agent, err := deploy.Agent{}.Objects()
	if err != nil {
		return err
	}
	all := append(hub, agent...)
	if o.agentNamespace() != "" {
		// A namespace that no manifest has is the namespace of an agent.
		if moved, err := o.deployed(); err == nil {
			all = append(all, moved...)
		}
	}
	i := slices.IndexFunc(all, func(object *unstructured.Unstructured) bool {
		return strings.EqualFold(object.GetKind(), kind) && object.GetName() == name && slices.Contains([]string{"", o.namespace}, object.GetNamespace())
	})
	if i < 0 {
		return fmt.Errorf("--show: artifacts/deploy has no %s %s in the namespace %s: set -n for another namespace", kind, name, o.namespace)
	}
	if all[i].GetKind() == "Secret" {
		return errors.New("--show prints no Secrets: kubectl hub join creates those of an agent")
	}
	data, err := yaml.Marshal(all[i].Object)
	if err == nil {
		_, err = o.Out.Write(data)
	}
	return err
}
