{{/*
The template of a process's pods. root; component; values (of the process); args; env; optionally
settings (the ConfigMap's name), scheme and port (it listens), health (the name for worker_health), tls (the
Secret with its certificate), waits (for the schema), restartPolicy, serviceAccountName.
*/}}
{{- define "cadastre.podTemplate" -}}
{{- $root := .root -}}
{{- /* Helm leaves out a value that a file sets to null, as by a key without anything below it. */ -}}
{{- $lists := dict "extraEnv" list "extraEnvFrom" list "extraVolumes" list "extraVolumeMounts" list "tolerations" list -}}
{{- $empty := merge (dict "annotations" dict "labels" dict "nodeSelector" dict "env" list) $lists -}}
{{- $values := merge (dict) .values $empty -}}
{{- $all := merge (dict) $root.Values.pods $empty -}}
{{- $settings := .settings | default (include "cadastre.fullname" $root) -}}
{{- $context := $root.Values.podSecurityContext -}}
{{- if $root.Values.openshift.enabled -}}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" -}}
{{- end -}}
metadata:
  labels:
    {{- include "cadastre.labels" (dict "root" $root "component" .component) | nindent 4 }}
    {{- with merge (dict) $values.labels $all.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/settings: {{ include "cadastre.settings" $root | sha256sum | quote }}
    {{- with merge (dict) $values.annotations $all.annotations ($root.Values.commonAnnotations | default dict) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ .serviceAccountName | default (include "cadastre.serviceAccountName" $root) | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with $values.terminationGracePeriodSeconds }}
  terminationGracePeriodSeconds: {{ . | int64 }}
  {{- end }}
  {{- with $values.priorityClassName | default $all.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  securityContext:
    {{- toYaml $context | nindent 4 }}
  {{- with $values.topologySpreadConstraints }}
  topologySpreadConstraints:
  {{- range . }}
  {{- $selector := dict "matchLabels" (include "cadastre.selector" $ | fromYaml) }}
  - {{- merge (dict) . (dict "labelSelector" $selector) | toYaml | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with merge (dict) $values.nodeSelector $all.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with concat $values.tolerations $all.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity | default $all.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .waits }}
  initContainers:
  - name: schema
    image: {{ include "cadastre.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: [/bin/sh, -c, "until python -m django migrate --check; do sleep 3; done"]
    env:
    - {name: IPAM_ROLE, value: command}
    {{- with $all.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    envFrom:
    - configMapRef: {name: {{ $settings | quote }}}
    {{- with $all.extraEnvFrom }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    securityContext:
      {{- toYaml $root.Values.securityContext | nindent 6 }}
    resources:
      {{- toYaml $root.Values.waitForSchema.resources | nindent 6 }}
    volumeMounts:
    - {name: secrets, mountPath: /etc/cadastre/secrets, readOnly: true}
    - {name: tmp, mountPath: /tmp}
    {{- with $all.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
  - name: cadastre
    image: {{ include "cadastre.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: {{ toJson .args }}
    env:
    {{- range $name, $value := .env }}
    {{- /* Helm reads numbers of files as floats, and would write a million as 1e+06. */}}
    - {name: {{ $name }}, value: {{ kindIs "string" $value | ternary $value ($value | int64) | toString | quote }}}
    {{- end }}
    {{- with concat $all.extraEnv $values.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    envFrom:
    - configMapRef: {name: {{ $settings | quote }}}
    {{- with $all.extraEnvFrom }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if .scheme }}
    ports:
    - {name: {{ .scheme }}, containerPort: {{ .port }}, protocol: TCP}
    {{- $probe := dict "port" .scheme }}
    {{- if eq .scheme "https" }}
    {{- $probe = dict "port" .scheme "scheme" "HTTPS" }}
    {{- end }}
    {{- $path := dict "startupProbe" "/healthz" "readinessProbe" "/readyz" "livenessProbe" "/healthz" }}
    {{- range $name := list "startupProbe" "readinessProbe" "livenessProbe" }}
    {{- with get $values $name }}
    {{ $name }}:
      {{- merge (dict "httpGet" (merge (dict "path" (get $path $name)) $probe)) . | toYaml | nindent 6 }}
    {{- end }}
    {{- end }}
    lifecycle:
      preStop:
        exec:
          # /readyz is red from now on, also for balancers outside of the cluster.
          command: [/bin/sh, -c, "touch /run/cadastre/draining; sleep {{ $values.drainSeconds | int64 }}"]
    {{- else if .health }}
    {{- $exec := dict "command" (list "python" "manage.py" "worker_health" .health) }}
    {{- range $name := list "startupProbe" "livenessProbe" }}
    {{- with get $values $name }}
    {{ $name }}:
      {{- merge (dict "exec" $exec) . | toYaml | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- end }}
    securityContext:
      {{- toYaml $root.Values.securityContext | nindent 6 }}
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    volumeMounts:
    - {name: secrets, mountPath: /etc/cadastre/secrets, readOnly: true}
    - {name: run, mountPath: /run/cadastre}
    - {name: tmp, mountPath: /tmp}
    {{- if .tls }}
    # A renewed certificate is used from the next connection on; nothing is restarted.
    - {name: tls, mountPath: /etc/cadastre/tls, readOnly: true}
    {{- end }}
    {{- with concat $all.extraVolumeMounts $values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
  - {{- include "cadastre.secretsVolume" $root | nindent 4 }}
  - name: run
    emptyDir: {medium: Memory, sizeLimit: 1Mi}
  - name: tmp
    emptyDir: {sizeLimit: 512Mi}
  {{- with .tls }}
  - name: tls
    secret: {secretName: {{ . | quote }}, defaultMode: 0440}
  {{- end }}
  {{- with concat $all.extraVolumes $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* A process: its Deployment, its budget and its autoscaler. As the pod's template. */}}
{{- define "cadastre.process" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $scaling := $values.autoscaling | default dict -}}
{{- $budget := $values.disruptionBudget | default dict -}}
{{- $metadata := include "cadastre.metadata" (dict "root" $root "suffix" .component "component" .component) -}}
{{- $selector := include "cadastre.selector" . -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- $metadata | nindent 2 }}
spec:
  {{- if not $scaling.enabled }}
  replicas: {{ $values.replicas | int64 }}
  {{- end }}
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  strategy:
    {{- if eq .component "beat" }}
    type: Recreate
    {{- else }}
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    {{- end }}
  template:
    {{- include "cadastre.podTemplate" . | nindent 4 }}
{{- if $scaling.enabled }}
{{- if gt (int64 $scaling.minReplicas) (int64 $scaling.maxReplicas) }}
{{- fail (printf "%s.autoscaling.minReplicas is more than %s.autoscaling.maxReplicas" .component .component) }}
{{- end }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- $metadata | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "cadastre.fullname" $root }}-{{ .component }}}
  minReplicas: {{ $scaling.minReplicas | int64 }}
  maxReplicas: {{ $scaling.maxReplicas | int64 }}
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, averageUtilization: {{ $scaling.targetCPU }}}
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- if $budget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- $metadata | nindent 2 }}
spec:
  {{- /* Of a single pod that has to stay, a drained node would wait for ever. */}}
  {{- if and (hasKey $budget "minAvailable") (gt (int (ternary $scaling.minReplicas $values.replicas ($scaling.enabled | default false))) 1) }}
  minAvailable: {{ $budget.minAvailable }}
  {{- else }}
  maxUnavailable: {{ $budget.maxUnavailable | default 1 }}
  {{- end }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
{{- end }}
{{- end -}}

{{/* A Service of web pods or of webhook pods. root, component, values, scheme, port. */}}
{{- define "cadastre.service" -}}
{{- with .values.service -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "cadastre.metadata" (dict "root" $.root "suffix" $.component "component" $.component "annotations" .annotations) | nindent 2 }}
spec:
  type: {{ .type }}
  ipFamilyPolicy: {{ .ipFamilyPolicy }}
  selector:
    {{- include "cadastre.selector" $ | nindent 4 }}
  ports:
  - {name: {{ $.scheme }}, port: {{ $.port }}, targetPort: {{ $.scheme }}, protocol: TCP}
{{- end }}
{{- end -}}
